#include "core/event/job_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/experiment/canonical_json.h"

namespace pelab::event {
namespace {

using testing::HasSubstr;

// A spec of 2 layers of 4 heads, 70 training and 30 test examples.
std::string Spec(const std::string& scored_classes = "all") {
  const auto whole = [](std::int64_t value) { return catalog::Value(value); };
  return ToCanonicalJson(
      experiment::MakeJob("clean", "rope", "distance", 1,
                          {{"task.train_examples", whole(70)},
                           {"task.test_examples", whole(30)},
                           {"task.scored_classes", catalog::Value(scored_classes)},
                           {"model.layers", whole(2)},
                           {"model.heads", whole(4)}}));
}

// The same with a target at 200 positions of the training examples and at 100 positions of the test
// examples, of 16 positions each.
std::string SpecByPosition(const std::string& scored_classes = "all") {
  const auto whole = [](std::int64_t value) { return catalog::Value(value); };
  return ToCanonicalJson(
      experiment::MakeJob("clean", "rope", "own", 1,
                          {{"task.targets", catalog::Value(std::string("position"))},
                           {"task.length", whole(16)},
                           {"task.train_examples", whole(70)},
                           {"task.test_examples", whole(30)},
                           {"task.train_targets", whole(200)},
                           {"task.test_targets", whole(100)},
                           {"task.scored_classes", catalog::Value(scored_classes)},
                           {"model.layers", whole(2)},
                           {"model.heads", whole(4)}}));
}

v1::Epoch Epoch(int train_total, int test_total) {
  v1::Epoch epoch;
  epoch.set_train_total(train_total);
  epoch.set_test_total(test_total);
  return epoch;
}

v1::HeadAblation Ablation(const std::string& parameters, int total, int layers = 2, int heads = 4) {
  v1::HeadAblation ablation;
  ablation.set_parameters_json(parameters);
  ablation.set_total(total);
  ablation.set_layers(layers);
  ablation.set_heads(heads);
  return ablation;
}

TEST(JobFacts, AreThoseOfTheSpec) {
  const auto facts = FactsOf(Spec());
  ASSERT_TRUE(facts.has_value());
  EXPECT_EQ(facts->layers, 2);
  EXPECT_EQ(facts->heads, 4);
  EXPECT_EQ(facts->train_targets, 70);
  EXPECT_EQ(facts->test_targets, 30);
  EXPECT_TRUE(facts->every_target_scored);
  EXPECT_FALSE(FactsOf(Spec("nonzero"))->every_target_scored);
  EXPECT_FALSE(FactsOf("{}").has_value());
  EXPECT_FALSE(FactsOf("").has_value());
}

TEST(JobFacts, AnEpochCountsTheExamplesOfTheJob) {
  const JobFacts job = *FactsOf(Spec());
  EXPECT_EQ(WhatIsWrong(Epoch(70, 30), job), "");
  EXPECT_EQ(WhatIsWrong(Epoch(70, 4), job),
            "epoch 0: \"test_total\" is 4; allowed: 30, as the job's test examples");
  EXPECT_EQ(WhatIsWrong(Epoch(71, 30), job),
            "epoch 0: \"train_total\" is 71; allowed: 70, as the job's training examples");
  v1::Epoch sample = Epoch(70, 30);
  sample.set_train_eval_total(70);
  EXPECT_EQ(WhatIsWrong(sample, job), "");
  sample.set_train_eval_total(71);
  EXPECT_THAT(WhatIsWrong(sample, job), HasSubstr("\"train_eval_total\" is 71; allowed: at most"));
  const JobFacts some_scored = *FactsOf(Spec("nonzero"));
  EXPECT_EQ(WhatIsWrong(Epoch(60, 4), some_scored), "");
  EXPECT_THAT(WhatIsWrong(Epoch(60, 31), some_scored),
              HasSubstr("\"test_total\" is 31; allowed: at most 30, as"));
}

TEST(JobFacts, AMatrixHasTheShapeOfTheModel) {
  const JobFacts job = *FactsOf(Spec());
  EXPECT_EQ(WhatIsWrong(Ablation(R"({"data":"test","max_examples":0})", 30), job), "");
  for (const auto& [layers, heads] : {std::pair(1, 1), {8, 8}, {2, 3}, {4, 2}}) {
    EXPECT_THAT(
        WhatIsWrong(Ablation(R"({"data":"test","max_examples":0})", 30, layers, heads), job),
        HasSubstr("heads; allowed: 2 layers of 4 heads, as the job's model"));
  }
}

TEST(JobFacts, AMatrixCountsTheExamplesThatWereAskedFor) {
  const JobFacts job = *FactsOf(Spec());
  const auto wrong = [&](const std::string& parameters, int total) {
    return WhatIsWrong(Ablation(parameters, total), job);
  };
  EXPECT_EQ(wrong(R"({"data":"test","max_examples":0})", 4),
            "head ablation: \"total\" is 4; allowed: 30, as the examples that were asked for");
  EXPECT_EQ(wrong(R"({"data":"all","max_examples":0})", 100), "");
  EXPECT_THAT(wrong(R"({"data":"all","max_examples":0})", 30), HasSubstr("allowed: 100, as"));
  EXPECT_EQ(wrong(R"({"data":"test","max_examples":20})", 20), "");
  EXPECT_THAT(wrong(R"({"data":"test","max_examples":20})", 30), HasSubstr("allowed: 20, as"));
  EXPECT_EQ(wrong(R"({"data":"test","max_examples":200})", 30), "");
  // No number of examples: no more than all.
  for (const char* most : {"20.0", "18446744073709551596", "null"}) {
    const std::string parameters = absl::StrCat(R"({"data":"test","max_examples":)", most, "}");
    EXPECT_EQ(wrong(parameters, 30), "") << most;
    EXPECT_THAT(wrong(parameters, 31), HasSubstr("allowed: at most 30, as")) << most;
  }
  // Parameters of another version: no more than all.
  EXPECT_EQ(wrong("{}", 4), "");
  EXPECT_THAT(wrong("{}", 101), HasSubstr("allowed: at most 100, as"));
}

TEST(JobFacts, OfTargetsByPositionArePositions) {
  const auto facts = FactsOf(SpecByPosition());
  ASSERT_TRUE(facts.has_value());
  EXPECT_EQ(facts->train_targets, 200);
  EXPECT_EQ(facts->test_targets, 100);
  EXPECT_EQ(facts->most_of_example, 16);
  EXPECT_TRUE(facts->every_target_scored);
  EXPECT_FALSE(FactsOf(SpecByPosition("nonzero"))->every_target_scored);
  EXPECT_EQ(FactsOf(Spec())->most_of_example, 1);
}

TEST(JobFacts, AnEpochCountsThePositionsThatHaveATarget) {
  const JobFacts job = *FactsOf(SpecByPosition());
  EXPECT_EQ(WhatIsWrong(Epoch(200, 100), job), "");
  EXPECT_THAT(WhatIsWrong(Epoch(70, 100), job), HasSubstr("\"train_total\" is 70; allowed: 200"));
  EXPECT_THAT(WhatIsWrong(Epoch(200, 30), job), HasSubstr("\"test_total\" is 30; allowed: 100"));
  v1::Epoch sample = Epoch(200, 100);
  sample.set_train_eval_total(200);
  EXPECT_EQ(WhatIsWrong(sample, job), "");
  sample.set_train_eval_total(201);
  EXPECT_THAT(WhatIsWrong(sample, job), HasSubstr("is 201; allowed: at most 200"));
  const JobFacts some_scored = *FactsOf(SpecByPosition("nonzero"));
  EXPECT_EQ(WhatIsWrong(Epoch(7, 3), some_scored), "");
  EXPECT_THAT(WhatIsWrong(Epoch(7, 101), some_scored), HasSubstr("at most 100"));
}

// 6 examples have at most 96 positions. Only the trainer knows how many of them have a target.
TEST(JobFacts, AMatrixOfSomeExamplesCountsAtMostTheirPositions) {
  const JobFacts job = *FactsOf(SpecByPosition());
  const auto wrong = [&](const std::string& parameters, int total) {
    return WhatIsWrong(Ablation(parameters, total), job);
  };
  EXPECT_EQ(wrong(R"({"data":"test","max_examples":0})", 100), "");
  EXPECT_THAT(wrong(R"({"data":"test","max_examples":0})", 30), HasSubstr("allowed: 100, as"));
  EXPECT_EQ(wrong(R"({"data":"all","max_examples":0})", 300), "");
  EXPECT_THAT(wrong(R"({"data":"all","max_examples":0})", 100), HasSubstr("allowed: 300, as"));
  for (const int total : {0, 1, 16}) {
    EXPECT_EQ(wrong(R"({"data":"test","max_examples":1})", total), "");
  }
  EXPECT_THAT(wrong(R"({"data":"test","max_examples":1})", 17),
              HasSubstr("\"total\" is 17; allowed: at most 16, as"));
  EXPECT_EQ(wrong(R"({"data":"test","max_examples":6})", 96), "");
  EXPECT_THAT(wrong(R"({"data":"test","max_examples":6})", 97), HasSubstr("at most 96, as"));
  EXPECT_EQ(wrong(R"({"data":"test","max_examples":7})", 100), "");
  EXPECT_THAT(wrong(R"({"data":"test","max_examples":7})", 101), HasSubstr("at most 100, as"));
  EXPECT_THAT(wrong(R"({"data":"all","max_examples":18})", 289), HasSubstr("at most 288, as"));
  EXPECT_THAT(wrong(R"({"data":"all","max_examples":19})", 301), HasSubstr("at most 300, as"));
  EXPECT_THAT(wrong(R"({"data":"all","max_examples":9223372036854775807})", 301),
              HasSubstr("at most 300, as"));
  EXPECT_THAT(wrong(R"({"data":"all","max_examples":-9223372036854775808})", 301),
              HasSubstr("allowed: 300, as"));
  EXPECT_THAT(wrong("{}", 301), HasSubstr("at most 300, as"));
}

TEST(JobFacts, OtherEventsAgreeWithEveryJob) {
  v1::Event event;
  event.mutable_started()->set_epochs(3);
  EXPECT_EQ(WhatIsWrong(event, *FactsOf(Spec())), "");
  *event.mutable_epoch() = Epoch(1, 1);
  EXPECT_NE(WhatIsWrong(event, *FactsOf(Spec())), "");
}

}  // namespace
}  // namespace pelab::event
