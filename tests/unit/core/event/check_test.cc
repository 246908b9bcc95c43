#include "core/event/check.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

namespace pelab::event {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

// The event of the text `good`, changed by the fields of `change`.
v1::Event Parse(const std::string& good, const std::string& change = "") {
  v1::Event event;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(good, &event)) << good;
  EXPECT_TRUE(google::protobuf::TextFormat::MergeFromString(change, &event)) << change;
  return event;
}
std::string Wrong(const std::string& good, const std::string& change = "") {
  return WhatIsWrong(Parse(good, change));
}

TEST(Check, AnEventHasABody) { EXPECT_EQ(Wrong("sequence: 1"), "it has no body"); }

TEST(Check, Hello) {
  EXPECT_EQ(Wrong("started { epochs: 1 }"), "");
  EXPECT_EQ(Wrong("started {}"),
            "hello: \"epochs\" is 0; allowed: an integer from 1 to 9223372036854775807");
  EXPECT_THAT(Wrong("started { epochs: 1 start_epoch: -1 }"), HasSubstr("\"start_epoch\" is -1"));
  const auto computing = [](const std::string& how) {
    return Wrong("started { epochs: 1 execution { " + how + " } }");
  };
  EXPECT_EQ(computing("threads: 1 packing: 1"), "");
  EXPECT_THAT(computing("packing: 1"), HasSubstr("\"threads\" is 0"));
  EXPECT_THAT(computing("threads: 1"), HasSubstr("\"packing\" is 0"));
  EXPECT_THAT(computing("threads: 1 packing: 1 micro_batch: -1"),
              HasSubstr("\"micro_batch\" is -1"));
  EXPECT_EQ(computing("threads: 1024 packing: 64 micro_batch: 1073741824"), "");
  EXPECT_EQ(computing("threads: 2147483647 packing: 1"),
            "hello: \"threads\" is 2147483647; allowed: an integer from 1 to 1024");
  EXPECT_THAT(computing("threads: 1 packing: 65"), HasSubstr("\"packing\" is 65"));
  EXPECT_THAT(computing("threads: 1 packing: 1 micro_batch: 1073741825"),
              HasSubstr("\"micro_batch\" is 1073741825"));
}

TEST(Check, SettingsInJson) {
  const auto read = ExecutionFromJson(R"({"threads":2,"micro_batch":64,"packing":1,"more":[]})");
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->threads(), 2);
  EXPECT_EQ(read->micro_batch(), 64);
  EXPECT_EQ(read->packing(), 1);
  EXPECT_EQ(WhatIsWrong(*read), "");
  const auto negative = ExecutionFromJson(R"({"threads":-4,"micro_batch":0,"packing":1})");
  ASSERT_TRUE(negative.has_value());
  EXPECT_EQ(WhatIsWrong(*negative),
            "execution: \"threads\" is -4; allowed: an integer from 1 to 1024");
  for (const char* bad : {"", "[1]", R"({"threads":2,"micro_batch":64})",
                          R"({"threads":2.5,"micro_batch":64,"packing":1})",
                          R"({"threads":10000000000,"micro_batch":64,"packing":1})",
                          R"({"threads":18446744073709551615,"micro_batch":64,"packing":1})"}) {
    EXPECT_FALSE(ExecutionFromJson(bad).has_value()) << bad;
  }
}

constexpr char kEpoch[] =
    "epoch: 4 train_loss: 1.5 train_correct: 0 train_total: 10 test_loss: 0.5 test_correct: 5 "
    "test_total: 5 learning_rate: 1e-3 seconds: 0 ";
std::string WrongEpoch(const std::string& change) {
  return Wrong("epoch { " + std::string(kEpoch) + " }", "epoch { " + change + " }");
}

TEST(Check, AnEpoch) {
  EXPECT_EQ(WrongEpoch(""), "");
  EXPECT_EQ(WrongEpoch("train_correct: 11"),
            "epoch 4: \"train_correct\" is 11; allowed: an integer from 0 to 10");
  EXPECT_THAT(WrongEpoch("epoch: -1"), HasSubstr("\"epoch\" is -1"));
  EXPECT_THAT(WrongEpoch("test_correct: 6"), HasSubstr("\"test_correct\" is 6"));
  EXPECT_THAT(WrongEpoch("test_correct: -1"), HasSubstr("\"test_correct\" is -1"));
  EXPECT_EQ(WrongEpoch("train_eval_correct: 3 train_eval_total: 4"), "");
  EXPECT_EQ(WrongEpoch("train_eval_correct: 5 train_eval_total: 4"),
            "epoch 4: \"train_eval_correct\" is 5; allowed: an integer from 0 to 4");
  EXPECT_THAT(WrongEpoch("train_eval_correct: 0"), HasSubstr("\"train_eval_total\" is 0"));
  EXPECT_THAT(WrongEpoch("test_total: -1"), HasSubstr("\"test_total\" is -1"));
  EXPECT_THAT(WrongEpoch("train_total: -9"), HasSubstr("\"train_total\" is -9"));
  EXPECT_EQ(WrongEpoch("learning_rate: inf"),
            "epoch 4: \"learning_rate\" is inf; allowed: a number from 0 on");
  EXPECT_THAT(WrongEpoch("learning_rate: -1"), HasSubstr("\"learning_rate\" is -1"));
  EXPECT_EQ(WrongEpoch("seconds: -0.5"),
            "epoch 4: \"seconds\" is -0.5; allowed: a number from 0 to 1e+09");
  EXPECT_THAT(WrongEpoch("seconds: 1e308"), HasSubstr("\"seconds\" is 1e+308"));
  EXPECT_THAT(WrongEpoch("seconds: nan"), HasSubstr("\"seconds\" is nan"));
  EXPECT_THAT(WrongEpoch("test_loss: inf"), HasSubstr("\"test_loss\" is inf"));
  EXPECT_EQ(WrongEpoch("test_loss: -0.5"),
            "epoch 4: \"test_loss\" is -0.5; allowed: a number from 0 on");
  EXPECT_THAT(WrongEpoch("train_loss: -1e-9"), HasSubstr("\"train_loss\" is -1e-09"));
  EXPECT_EQ(WrongEpoch("train_total: 9223372036854775807"),
            "epoch 4: \"train_total\" is 9223372036854775807; allowed: an integer from 1 to "
            "2000000000");
}

TEST(Check, LossesThatAreNotFiniteAreToldApart) {
  v1::Epoch epoch;
  EXPECT_TRUE(HasFiniteLosses(epoch));
  epoch.set_train_loss(std::nan(""));
  EXPECT_FALSE(HasFiniteLosses(epoch));
  epoch.set_train_loss(0);
  epoch.set_test_loss(-std::numeric_limits<double>::infinity());
  EXPECT_FALSE(HasFiniteLosses(epoch));
}

// Two layers of two heads, of which the last does not exist.
v1::HeadAblation Ablation() {
  return Parse(R"(head_ablation {
      version: 2 parameters_json: "{}" layers: 2 heads: 2 total: 97 intact_correct: 42
      intact_nll: 1.25 chance: 0.01
      correct: [10, 42, 40, 0] lost: [35, 2, 3, 0] gained: [3, 2, 1, 0]
      nll: [2.5, 1.25, 1.5, 0] nll_standard_error: [0.125, 0, 0, 0]
      missing: [false, false, false, true] })")
      .head_ablation();
}
template <typename Change>
std::string WrongAblation(const Change& change) {
  v1::HeadAblation ablation = Ablation();
  change(ablation);
  return WhatIsWrong(ablation);
}

TEST(Check, AHeadAblation) {
  EXPECT_EQ(WhatIsWrong(Ablation()), "");
  EXPECT_TRUE(HasEntry(Ablation(), 2));
  EXPECT_FALSE(HasEntry(Ablation(), 3));
  EXPECT_EQ(WrongAblation([](auto& a) { a.set_chance(0); }),
            "head ablation: \"chance\" is 0; allowed: a number above 0 and at most 1");
  EXPECT_THAT(WrongAblation([](auto& a) { a.set_chance(1.5); }), HasSubstr("\"chance\""));
  EXPECT_THAT(WrongAblation([](auto& a) { a.set_version(0); }), HasSubstr("\"version\" is 0"));
  EXPECT_THAT(WrongAblation([](auto& a) { a.set_parameters_json("[]"); }),
              HasSubstr("its parameters are not a JSON object"));
  EXPECT_THAT(WrongAblation([](auto& a) { a.set_layers(0); }), HasSubstr("\"layers\" is 0"));
  EXPECT_THAT(WrongAblation([](auto& a) { a.set_layers(kMostLayers + 1); }),
              HasSubstr("\"layers\" is 65; allowed: an integer from 1 to 64"));
  EXPECT_THAT(WrongAblation([](auto& a) { a.set_heads(kMostHeads + 1); }),
              HasSubstr("\"heads\" is 129; allowed: an integer from 1 to 128"));
  EXPECT_THAT(WrongAblation([](auto& a) { a.set_total(kMost); }), HasSubstr("\"total\" is 9223"));
  EXPECT_THAT(WrongAblation([](auto& a) { a.set_intact_correct(98); }),
              HasSubstr("\"intact_correct\" is 98"));
  EXPECT_THAT(WrongAblation([](auto& a) { a.set_intact_nll(std::nan("")); }),
              HasSubstr("\"intact_nll\" is nan"));
  EXPECT_THAT(WrongAblation([](auto& a) { a.set_seconds(-1); }), HasSubstr("\"seconds\" is -1"));
}

TEST(Check, TheArraysOfAHeadAblationAreWhole) {
  EXPECT_EQ(WrongAblation([](auto& a) { a.clear_nll(); }),
            "head ablation: \"nll\" has 0 entries; allowed: 4, for 2 layers of 2 heads");
  EXPECT_THAT(WrongAblation([](auto& a) { a.add_lost(1); }), HasSubstr("\"lost\" has 5 entries"));
  EXPECT_THAT(WrongAblation([](auto& a) { a.mutable_missing()->RemoveLast(); }),
              HasSubstr("\"missing\" has 3 entries"));
  EXPECT_THAT(WrongAblation([](auto& a) { a.set_layers(3); }),
              HasSubstr("\"correct\" has 4 entries; allowed: 6"));
}

TEST(Check, TheEntriesOfAHeadAblationAgree) {
  EXPECT_EQ(WrongAblation([](auto& a) { a.set_correct(1, 98); }),
            "head ablation: layer 0 head 1: \"correct\" is 98; allowed: an integer from 0 to 97");
  EXPECT_EQ(
      WrongAblation([](auto& a) { a.set_lost(2, 4); }),
      "head ablation: layer 1 head 0: it has 40 correct of 42 intact, but 4 lost and 1 gained");
  EXPECT_THAT(WrongAblation([](auto& a) { a.set_gained(0, 56); }),
              HasSubstr("\"gained\" is 56; allowed: an integer from 0 to 55"));
  EXPECT_THAT(WrongAblation([](auto& a) { a.set_nll(0, -1); }), HasSubstr("\"nll\" is -1"));
  EXPECT_THAT(WrongAblation([](auto& a) { a.set_nll_standard_error(0, std::nan("")); }),
              HasSubstr("\"nll_standard_error\" is nan"));
  for (const std::int64_t extreme : {kLeast, kMost}) {
    EXPECT_THAT(WrongAblation([&](auto& a) { a.set_correct(0, extreme); }), HasSubstr("correct"));
    EXPECT_THAT(WrongAblation([&](auto& a) { a.set_lost(0, extreme); }), HasSubstr("lost"));
  }
  EXPECT_EQ(WrongAblation([](auto& a) { a.set_correct(3, 98); }), "") << "it does not exist";
}

TEST(Check, AnAnalysis) {
  const auto wrong = [](const std::string& change) {
    return Wrong(
        R"(analysis { name: "probe" version: 1 parameters_json: "{}" result_json: "[1]" })",
        "analysis { " + change + " }");
  };
  EXPECT_EQ(wrong(""), "");
  EXPECT_EQ(Wrong("analysis {}"), "analysis : it has no name");
  EXPECT_THAT(wrong("version: -1"), HasSubstr("analysis probe: \"version\" is -1"));
  EXPECT_EQ(wrong("parameters_json: \"3\""),
            "analysis probe: its parameters are not a JSON object");
  EXPECT_EQ(wrong("result_json: \"{\""), "analysis probe: its result is not JSON");
  EXPECT_THAT(wrong("seconds: -2"), HasSubstr("\"seconds\" is -2"));
  const std::string name(79, 'x');
  EXPECT_THAT(wrong("name: \"" + name + "é\" version: -1"),
              HasSubstr("analysis " + name + "…: \"version\" is -1"));
}

TEST(Check, Files) {
  const std::string hash(64, 'a');
  EXPECT_EQ(Wrong("artifact { name: \"w\" sha256: \"" + hash + "\" }"), "");
  EXPECT_EQ(Wrong("artifact { sha256: \"" + hash + "\" }"), "file: it has no name");
  for (const std::string name : {"../x", "a/b", "..", ".", "a\\nb", "\\177", "/"}) {
    EXPECT_THAT(Wrong("artifact { name: \"" + name + "\" sha256: \"" + hash + "\" }"),
                HasSubstr("; allowed: 1 to 256 bytes without \"/\" and control characters"))
        << name;
  }
  EXPECT_THAT(Wrong("artifact { name: \"a\\nb\" sha256: \"" + hash + "\" }"),
              HasSubstr(R"(file: "name" is "a\nb"; allowed: )"));
  const std::string longest(256, 'w');
  EXPECT_EQ(Wrong("artifact { name: \"" + longest + "\" sha256: \"" + hash + "\" }"), "");
  EXPECT_THAT(Wrong("artifact { name: \"" + longest + "w\" sha256: \"" + hash + "\" }"),
              HasSubstr("\"name\" is "));
  EXPECT_EQ(Wrong("artifact { name: \"w\" sha256: \"../x\" }"), "file: it has no SHA-256");
  EXPECT_EQ(Wrong("checkpoint { epoch: 3 sha256: \"" + hash + "\" }"), "");
  EXPECT_EQ(Wrong("checkpoint { epoch: 3 }"), "checkpoint: its file has no SHA-256");
  for (const char* kind : {"artifact { name: \"w\" ", "checkpoint { "}) {
    const std::string start = std::string(kind) + "sha256: \"" + hash + "\" bytes: ";
    EXPECT_EQ(Wrong(start + "9223372036854775807 }"), "");
    EXPECT_THAT(Wrong(start + "9223372036854775808 }"),
                HasSubstr("\"bytes\" is 9223372036854775808; allowed: an integer from 0 to"));
  }
  EXPECT_THAT(Wrong("checkpoint { epoch: -3 sha256: \"" + hash + "\" }"),
              HasSubstr("\"epoch\" is -3"));
}

TEST(Check, AnEnd) {
  for (const char* outcome : {"SUCCEEDED", "FAILED", "PREEMPTED", "CANCELLED"}) {
    EXPECT_EQ(Wrong(std::string("finished { outcome: ATTEMPT_OUTCOME_") + outcome + " }"), "");
  }
  EXPECT_EQ(Wrong("finished { outcome: ATTEMPT_OUTCOME_LOST }"),
            "end: \"outcome\" is 3; allowed: succeeded, failed, preempted or cancelled");
  EXPECT_THAT(Wrong("finished {}"), HasSubstr("\"outcome\" is 0"));
  const auto lasted = [](const std::string& seconds) {
    return Wrong("finished { outcome: ATTEMPT_OUTCOME_SUCCEEDED wall_seconds: " + seconds + " }");
  };
  EXPECT_EQ(lasted("1e9"), "");
  EXPECT_EQ(lasted("-5"), "end: \"wall_seconds\" is -5; allowed: a number from 0 to 1e+09");
  for (const char* seconds : {"inf", "-inf", "1e308", "nan"}) {
    EXPECT_THAT(lasted(seconds), HasSubstr("\"wall_seconds\" is ")) << seconds;
  }
  const auto used = [](const std::string& joules) {
    return Wrong("finished { outcome: ATTEMPT_OUTCOME_PREEMPTED energy_joules: " + joules + " }");
  };
  for (const char* joules : {"0", "12.5", "1e12"}) EXPECT_EQ(used(joules), "") << joules;
  EXPECT_EQ(used("-1"), "end: \"energy_joules\" is -1; allowed: a number from 0 to 1e+12");
  for (const char* joules : {"inf", "-inf", "1.1e12", "nan"}) {
    EXPECT_THAT(used(joules), HasSubstr("\"energy_joules\" is ")) << joules;
  }
}

}  // namespace
}  // namespace pelab::event
