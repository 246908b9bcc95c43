// The parts of the analyses, and layer and cumulative ablation, against plain loops and
// computations by hand.
#include "core/experiment/analysis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>

#include "tests/unit/worker/trainer/analysis/ablation_fixture.h"
#include "tests/unit/worker/trainer/random_tensor_fixture.h"
#include "worker/trainer/analysis/cumulative_ablation.h"
#include "worker/trainer/analysis/example_correctness.h"
#include "worker/trainer/analysis/layer_ablation.h"
#include "worker/trainer/analysis/paired.h"
#include "worker/trainer/analysis/replacement_values.h"
#include "worker/trainer/protocol/error.h"
#include "worker/trainer/protocol/stop.h"
#include "worker/trainer/train/evaluate.h"

namespace pelab::trainer {
namespace {

// Logits whose softmax gives class 0 the probability p and class 1 the rest.
at::Tensor TwoClasses(const std::vector<double>& p) {
  const at::Tensor first = at::tensor(p, at::kDouble);
  return at::stack({first.log(), (1 - first).log()}, 1);
}

TEST(Paired, CountsAndErrorsByHand) {
  // Five examples; the last one has the class that is not scored.
  const at::Tensor classes = at::tensor({0, 0, 0, 0, 1}, at::kLong);
  const std::vector<double> before = {0.8, 0.6, 0.4, 0.9, 0.9}, after = {0.4, 0.7, 0.6, 0.2, 0.1};
  const Predictions intact = Predict(TwoClasses(before), classes, 1);
  const Predictions ablated =
      Predict(at::stack({TwoClasses(after), TwoClasses(before)}), classes, 1);
  IntactTally whole;
  PairedTally tally;
  for (const std::int64_t begin : {0, 2}) {  // in two batches
    const std::int64_t count = begin == 0 ? 2 : 3;
    const auto part = [&](const Predictions& of) {
      return Predictions{of.right.narrow(-1, begin, count), of.nll.narrow(-1, begin, count)};
    };
    whole.Add(part(intact), classes.narrow(0, begin, count), 1);
    tally.Add(part(intact), part(ablated));
  }
  const IntactScore score = whole.Finish();
  EXPECT_EQ(score.total, 4);
  EXPECT_EQ(score.correct, 3);
  EXPECT_NEAR(score.nll, -(std::log(0.8) + std::log(0.6) + std::log(0.4) + std::log(0.9)) / 4,
              1e-12);
  const std::vector<PairedScore> scores = tally.Finish(score.total);
  ASSERT_EQ(scores.size(), 2u);
  EXPECT_EQ(scores[0].correct, 2);  // the second and the third
  EXPECT_EQ(scores[0].lost, 2);     // the first and the fourth
  EXPECT_EQ(scores[0].gained, 1);   // the third
  const double changes[] = {std::log(0.8 / 0.4), std::log(0.6 / 0.7), std::log(0.4 / 0.6),
                            std::log(0.9 / 0.2)};
  double mean = 0, variance = 0;
  for (const double change : changes) mean += change / 4;
  for (const double change : changes) variance += (change - mean) * (change - mean) / 4;
  EXPECT_NEAR(scores[0].nll - score.nll, mean, 1e-12);
  EXPECT_NEAR(scores[0].nll_standard_error, std::sqrt(variance / 4), 1e-12);
  EXPECT_EQ(scores[1].correct, 3);  // nothing changed
  EXPECT_EQ(scores[1].lost + scores[1].gained, 0);
  EXPECT_EQ(scores[1].nll, score.nll);
  EXPECT_EQ(scores[1].nll_standard_error, 0);
}

TEST(Paired, EqualLogitsPredictTheLowestClass) {
  const Predictions equal =
      Predict(at::zeros({2, 3}), at::tensor({0, 2}, at::kLong), kNoIgnoredClass);
  EXPECT_TRUE(equal.right[0].item<bool>());
  EXPECT_FALSE(equal.right[1].item<bool>());
}

// Removing a head changes losses by less than bfloat16 can represent.
TEST(Paired, LossesOfRoundedLogitsAreNotRoundedThemselves) {
  const at::Tensor logits = RandomTensor("logits", {5, 9, 70}).to(at::kBFloat16);
  const at::Tensor classes = at::arange(9, at::kLong) * 3;
  const Predictions rounded = Predict(logits, classes, kNoIgnoredClass);
  const Predictions exact = Predict(logits.to(at::kDouble), classes, kNoIgnoredClass);
  EXPECT_LT((rounded.nll - exact.nll).abs().max().item<double>(), 1e-5);
  EXPECT_TRUE(rounded.right.equal(exact.right));
}

TEST(Paired, AnInfiniteLossIsAnError) {
  const at::Tensor classes = at::zeros({1}, at::kLong);
  const Predictions intact = Predict(at::zeros({1, 2}), classes, kNoIgnoredClass);
  PairedTally tally;
  tally.Add(intact, Predict(TwoClasses({0.0}).unsqueeze(0), classes, kNoIgnoredClass));
  EXPECT_THAT([&] { tally.Finish(1); }, testing::Throws<TrainerError>(testing::Property(
                                            &TrainerError::kind, ErrorKind::kNonFiniteLoss)));
}

TEST(ReplacementValues, MeansLeaveOutPads) {
  const at::NoGradGuard no_grad;
  for (const experiment::Job& job : {PaddedJob("published", "rope"), PaddedJob("clean", "absolute"),
                                     SmallJob("clean", "alibi", "counting")}) {
    const Subject subject(job);
    for (const std::int64_t count : {1, 29}) {
      const Replacement means = MeanHeads(subject.model.decoder, subject.data, count);
      const std::vector<at::Tensor> expected = PlainMeans(subject, count);
      for (std::size_t layer = 0; layer < expected.size(); ++layer) {
        const at::Tensor mean = means.At(static_cast<std::int64_t>(layer));
        ASSERT_EQ(mean.size(0), 1);
        EXPECT_LT(LargestDifference(mean[0], expected[layer]), 1e-12) << job.pe << " " << count;
      }
    }
  }
}

TEST(ReplacementValues, DonorsAreOtherTestExamples) {
  const Subject subject(SmallJob("clean", "nope", "distance"));
  const at::Tensor all = at::arange(144, at::kLong);
  const at::Tensor donors = Donors(subject.data, 7, all);
  std::vector<int> times(144, 0);
  for (std::int64_t i = 0; i < 144; ++i) {
    const auto donor = donors[i].item<std::int64_t>();
    ASSERT_TRUE(donor >= 96 && donor < 144);
    EXPECT_NE(donor, i);
    ++times[donor];
    // As the header describes it.
    CounterRandom random(7, "ablation/donor", i);
    const auto rank = static_cast<std::int64_t>(random.Below(i < 96 ? 48 : 47));
    EXPECT_EQ(donor, 96 + (i >= 96 && 96 + rank >= i ? rank + 1 : rank));
  }
  EXPECT_LT(*std::max_element(times.begin(), times.end()), 14) << "3 expected";
  EXPECT_TRUE(Donors(subject.data, 7, all.narrow(0, 100, 3)).equal(donors.narrow(0, 100, 3)));
  EXPECT_FALSE(Donors(subject.data, 8, all).equal(donors));
}

TEST(ReplacementValues, ALonelyTestExampleHasNoDonor) {
  const experiment::Job job =
      SmallJob("clean", "nope", "distance", {{"task.test_examples", std::int64_t{1}}});
  const Subject subject(job);
  const auto refused = testing::ThrowsMessage<TrainerError>(
      testing::HasSubstr("task.test_examples is 1; allowed: 2 or more"));
  EXPECT_THAT([&] { Donors(subject.data, 0, at::tensor({std::int64_t{96}})); }, refused);
  EXPECT_THAT([&] { CheckMethod(Method::kResample, job); }, refused);
  CheckMethod(Method::kMean, job);
}

// Counts the right answers of a model with `heads` removed from the weights.
std::int64_t RightWithout(const Subject& subject, const std::vector<Head>& heads,
                          std::int64_t begin, std::int64_t end) {
  at::Tensor weights = subject.model.parameters.flat().detach();
  const at::Tensor saved = weights.clone();
  for (const Head& head : heads) ZeroValues(subject.model, head.layer, head.head);
  const Score score = Evaluate(subject.model.decoder, subject.data, begin, end);
  weights.copy_(saved);
  return score.correct;
}

TEST(ExampleCorrectness, IsThatOfEachExampleAlone) {
  const at::NoGradGuard no_grad;
  for (const experiment::Job& job :
       {SmallJob("clean", "rope", "distance"), SmallJob("published", "alibi", "counting")}) {
    const Subject subject(job);
    for (const std::int64_t count : {0, 5}) {
      const ExampleCorrectness judged = JudgeExamples(subject.model.decoder, subject.data, count);
      const std::int64_t end = count == 0 ? 144 : 96 + count;
      std::string digits((end - 96 + 3) / 4, '0');
      std::int64_t right = 0;
      for (std::int64_t example = 96; example < end; ++example) {
        const at::Tensor logits = LogitsOfOne(subject, example, [](std::int64_t, at::Tensor*) {});
        const LabeledBatch one = subject.data.Range(example, example + 1);
        const bool scored = one.classes.item<std::int64_t>() != subject.data.ignored_class();
        if (!scored || logits.argmax().item<std::int64_t>() != one.classes.item<std::int64_t>())
          continue;
        ++right;
        const std::int64_t bit = example - 96;
        const unsigned digit =
            static_cast<unsigned>(digits[bit / 4] <= '9' ? digits[bit / 4] - '0'
                                                         : digits[bit / 4] - 'a' + 10) |
            8u >> bit % 4;
        digits[bit / 4] = "0123456789abcdef"[digit];
      }
      EXPECT_EQ(judged.right, digits);
      EXPECT_EQ(judged.intact.correct, right);
    }
  }
}

TEST(LayerAblation, ZeroIsThatOfAModelWithoutTheLayersValues) {
  const at::NoGradGuard no_grad;
  for (const experiment::Job& job :
       {SmallJob("clean", "rope", "distance"), SmallJob("published", "alibi", "counting"),
        SmallJob("clean", "nope", "distance", {{"model.readout", Word("last")}})}) {
    const Subject subject(job);
    const LayerAblationResult result =
        AblateLayers(subject.model.decoder, subject.data, 0, LayerAblationOptions{});
    ASSERT_EQ(result.layers.size(), 2u);
    EXPECT_EQ(result.intact.correct, RightWithout(subject, {}, 96, 144));
    for (std::int64_t layer = 0; layer < 2; ++layer) {
      EXPECT_EQ(result.layers[layer].correct,
                RightWithout(subject, {{layer, 0}, {layer, 1}}, 96, 144));
    }
  }
}

TEST(LayerAblation, MeanAndResampleAreThoseOfPlainLoops) {
  const at::NoGradGuard no_grad;
  const Subject subject(PaddedJob("published", "rope"));
  const std::vector<at::Tensor> means = PlainMeans(subject, 20);
  const std::vector<at::Tensor> intact = LogitsOfEach(subject, 0, 20);
  const auto donors = HeadsOfDonors(subject, 5, 0, 20);
  for (const Method method : {Method::kMean, Method::kResample}) {
    LayerAblationOptions options;
    options.method = method;
    options.all_data = true;
    options.max_examples = 20;
    const LayerAblationResult result =
        AblateLayers(subject.model.decoder, subject.data, 5, options);
    for (std::int64_t layer = 0; layer < 2; ++layer) {
      const Plain plain = CountPlainly(subject, 0, intact, [&](std::int64_t example) {
        const at::Tensor by = method == Method::kMean ? means[layer] : donors[example][layer];
        return LogitsOfOne(subject, example, [&](std::int64_t at, at::Tensor* heads) {
          if (at == layer) heads->copy_(by);
        });
      });
      EXPECT_EQ(result.layers[layer].correct, plain.correct);
      EXPECT_EQ(result.layers[layer].lost, plain.lost);
      EXPECT_EQ(result.layers[layer].gained, plain.gained);
      EXPECT_NEAR(result.layers[layer].nll, plain.nll, 1e-9);
      EXPECT_NEAR(result.layers[layer].nll_standard_error, plain.error, 1e-9);
      EXPECT_NEAR(result.intact.nll, plain.intact_nll, 1e-9);
    }
  }
}

// Changes the weights so that the model is better than chance on its training examples and counts
// differ.
void Sharpen(const Subject& subject) {
  for (const auto& named : subject.model.parameters.NamedTensors()) {
    at::Tensor tensor = named.tensor;
    if (named.name.find("attention") != std::string::npos) tensor.mul_(3);
  }
}

TEST(CumulativeAblation, GreedyOrderAndCurvesAreThoseOfBruteForce) {
  const at::NoGradGuard no_grad;
  for (const char* protocol : {"clean", "published"}) {
    const Subject subject(
        SmallJob(protocol, "rope", "counting",
                 {{"model.layers", std::int64_t{3}}, {"model.heads", std::int64_t{4}}}));
    Sharpen(subject);
    CumulativeAblationOptions options;
    options.steps = 100;  // all twelve
    options.orders = 2;
    options.max_examples = 40;
    const CumulativeAblationResult result =
        AblateCumulatively(subject.model.decoder, subject.data, 9, options);
    EXPECT_EQ(result.intact.correct, RightWithout(subject, {}, 96, 136));
    std::vector<Head> removed;
    std::set<std::int64_t> counts;
    for (std::size_t step = 0; step < 12; ++step) {
      Head best;
      std::int64_t fewest = 1000;
      for (std::int64_t layer = 0; layer < 3; ++layer) {
        for (std::int64_t head = 0; head < 4; ++head) {
          const Head candidate{layer, head};
          if (std::find(removed.begin(), removed.end(), candidate) != removed.end()) continue;
          std::vector<Head> with = removed;
          with.push_back(candidate);
          const std::int64_t count = RightWithout(subject, with, 0, 40);
          counts.insert(count);
          if (count >= fewest) continue;
          fewest = count;
          best = candidate;
        }
      }
      removed.push_back(best);
      ASSERT_LT(step, result.greedy.heads.size());
      EXPECT_EQ(result.greedy.heads[step].layer, best.layer) << protocol << " step " << step;
      EXPECT_EQ(result.greedy.heads[step].head, best.head) << protocol << " step " << step;
      EXPECT_EQ(result.greedy.correct[step], RightWithout(subject, removed, 96, 136));
    }
    EXPECT_GT(counts.size(), 3u) << "the heads differ";
    EXPECT_EQ(result.greedy.heads.size(), 12u);
    ASSERT_EQ(result.random.size(), 2u);
    EXPECT_FALSE(result.random[0].heads == result.random[1].heads);
    for (const RemovalCurve& curve : result.random) {
      ASSERT_EQ(curve.heads.size(), 12u);
      ASSERT_EQ(curve.correct.size(), 12u);
      std::set<std::pair<std::int64_t, std::int64_t>> all;
      std::vector<Head> so_far;
      for (std::size_t step = 0; step < 12; ++step) {
        so_far.push_back(curve.heads[step]);
        all.insert({curve.heads[step].layer, curve.heads[step].head});
        EXPECT_EQ(curve.correct[step], RightWithout(subject, so_far, 96, 136));
      }
      EXPECT_EQ(all.size(), 12u);
      EXPECT_EQ(curve.correct.back(), result.greedy.correct.back()) << "nothing is left of either";
    }
  }
}

TEST(CumulativeAblation, MeansAndDonorsTakeThePlaceOfAllThatAreRemoved) {
  const at::NoGradGuard no_grad;
  const Subject subject(PaddedJob("clean", "relative"));
  Sharpen(subject);
  const std::vector<at::Tensor> means = PlainMeans(subject, 15);
  const std::vector<at::Tensor> first = LogitsOfEach(subject, 0, 15);
  const std::vector<at::Tensor> tests = LogitsOfEach(subject, 96, 111);
  const auto donors_of_first = HeadsOfDonors(subject, 4, 0, 15);
  const auto donors_of_tests = HeadsOfDonors(subject, 4, 96, 111);
  for (const Method method : {Method::kMean, Method::kResample}) {
    CumulativeAblationOptions options{method, 3, 1, 15};
    const CumulativeAblationResult result =
        AblateCumulatively(subject.model.decoder, subject.data, 4, options);
    // The right answers among examples [begin, begin + 15) with the heads in `removed` replaced.
    const auto right = [&](const std::vector<Head>& removed, std::int64_t begin) {
      const auto& donors = begin == 0 ? donors_of_first : donors_of_tests;
      const auto ablated = [&](std::int64_t example) {
        const std::vector<at::Tensor>& by =
            method == Method::kMean ? means : donors[example - begin];
        return LogitsOfOne(subject, example, [&](std::int64_t layer, at::Tensor* outputs) {
          for (const Head& head : removed) {
            if (head.layer != layer) continue;
            outputs->narrow(1, 8 * head.head, 8).copy_(by[layer].narrow(1, 8 * head.head, 8));
          }
        });
      };
      return CountPlainly(subject, begin, begin == 0 ? first : tests, ablated).correct;
    };
    std::vector<Head> greedy, random;
    for (std::size_t step = 0; step < 3; ++step) {
      std::int64_t fewest = 1000;
      Head best;
      for (const Head candidate : {Head{0, 0}, Head{0, 1}, Head{1, 0}, Head{1, 1}}) {
        if (std::find(greedy.begin(), greedy.end(), candidate) != greedy.end()) continue;
        std::vector<Head> with = greedy;
        with.push_back(candidate);
        const std::int64_t count = right(with, 0);
        if (count >= fewest) continue;
        fewest = count;
        best = candidate;
      }
      greedy.push_back(best);
      random.push_back(result.random[0].heads.at(step));
      EXPECT_TRUE(result.greedy.heads.at(step) == best) << step;
      EXPECT_EQ(result.greedy.correct.at(step), right(greedy, 96)) << step;
      EXPECT_EQ(result.random[0].correct.at(step), right(random, 96)) << step;
    }
  }
}

TEST(CumulativeAblation, OptionsAreReadAndBounded) {
  const CumulativeAblationOptions options =
      CumulativeAblationOptionsFrom(experiment::MakeAnalysis("clean", "cumulative_ablation"));
  EXPECT_EQ(options.steps, 16);
  EXPECT_EQ(options.orders, 5);
  EXPECT_EQ(options.max_examples, 2000);
  // There are at most as many steps as heads.
  const experiment::Job small = SmallJob("clean", "rope", "distance");
  CheckRemovals({Method::kZero, 8192, 1000, 0}, small);
  const experiment::Job large =
      SmallJob("clean", "rope", "distance",
               {{"model.layers", std::int64_t{64}}, {"model.heads", std::int64_t{16}}});
  CheckRemovals({Method::kZero, 8192, 96, 0}, large);
  EXPECT_THAT(
      [&] {
        CheckRemovals({Method::kZero, 8192, 97, 0}, large);
      },
      testing::ThrowsMessage<TrainerError>(
          testing::HasSubstr("cumulative_ablation.orders 97 of 1024 heads; allowed: at most 96")));
}

TEST(Analyses, StopWhenTheyAreToldTo) {
  const Subject subject(SmallJob("clean", "rope", "distance"));
  SetStopRequested(true);
  EXPECT_THROW(AblateLayers(subject.model.decoder, subject.data, 0, {}), Stopped);
  EXPECT_THROW(AblateCumulatively(subject.model.decoder, subject.data, 0, {}), Stopped);
  SetStopRequested(false);
}

}  // namespace
}  // namespace pelab::trainer
