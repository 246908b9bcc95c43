// Analyses of models that have a target for each position, against plain passes and loops.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "tests/unit/worker/trainer/analysis/ablation_fixture.h"
#include "tests/unit/worker/trainer/own_data_fixture.h"
#include "worker/trainer/analysis/cumulative_ablation.h"
#include "worker/trainer/analysis/example_correctness.h"
#include "worker/trainer/analysis/head_ablation.h"
#include "worker/trainer/analysis/layer_ablation.h"
#include "worker/trainer/train/evaluate.h"

namespace pelab::trainer {
namespace {

catalog::Values ThreeLayers(const catalog::Values& set = {}) {
  catalog::Values values = {{"model.layers", std::int64_t{3}}, {"model.heads", std::int64_t{4}}};
  for (const auto& [field, value] : set) values[field] = value;
  return values;
}

// The outputs of the heads in a pass over the same examples in another order.
Replacement OutputsOfOthers(const Subject& subject, const Batch& batch, bool mean) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> layers;
  for (const LayerTrace& layer : RunTraced(subject.model.decoder, batch).layers) {
    const at::Tensor turned = layer.heads.flip(0) * 0.7 - 0.1;
    layers.push_back(mean ? turned.mean(0, true) : turned);
  }
  return Replacement(layers);
}

// Each model meets both kinds of hygiene and all three replacements, and the next one meets them in
// other pairs.
TEST(AblationByPosition, FanOutIsTheNaiveWay) {
  const at::NoGradGuard no_grad;
  const DataFolder folder;
  std::size_t models = 0;
  for (const char* pe : {"rope", "alibi", "absolute"}) {
    for (const char* protocol : {"clean", "published"}) {
      for (const char* source : {"self", "input"}) {
        for (const bool padded : {false, true}) {
          const Subject subject(folder.Job(RandomByPosition({96, 48, 16, padded}),
                                           ThreeLayers({{"model.kv_source", Word(source)}}), "test",
                                           protocol, pe));
          const Batch batch = subject.data.Range(96, 101).inputs;
          const std::int64_t classes = subject.labels.classes;
          const at::Tensor intact = subject.model.decoder.Logits(batch, nullptr);
          for (std::size_t number = models; number < models + 3; ++number) {
            const auto [hygiene, replaced_by] = PairOf(number);
            SCOPED_TRACE(testing::Message()
                         << protocol << " " << pe << " " << source << " " << padded << ", hygiene "
                         << static_cast<int>(hygiene) << ", replaced by " << replaced_by);
            Ablation ablation{Target::kHead, hygiene, {}, {}};
            if (replaced_by > 0) {
              ablation.heads = OutputsOfOthers(subject, batch, replaced_by == 1);
            }
            const at::Tensor naive = AblatedLogitsNaive(subject.model.decoder, batch, ablation);
            ASSERT_EQ(naive.sizes(), (std::vector<std::int64_t>{3, 4, 5 * 16, classes}));
            const at::Tensor quick = AblatedLogits(subject.model.decoder, batch, ablation);
            ASSERT_EQ(quick.sizes(), naive.sizes());
            EXPECT_LT(LargestDifference(quick, naive), 1e-11);
            EXPECT_GT(LargestDifference(naive[2][0], intact), 1e-6) << "the head matters";
          }
          ++models;
        }
      }
    }
  }
}

// Counts the targets of examples [begin, end), and those that are right with `heads` removed from
// the weights.
struct PositionCount {
  std::int64_t right = 0, total = 0;
  double nll = 0;
};
PositionCount CountWithout(const Subject& subject, const std::vector<Head>& heads,
                           std::int64_t begin, std::int64_t end) {
  at::Tensor weights = subject.model.parameters.flat().detach();
  const at::Tensor saved = weights.clone();
  for (const Head& head : heads) ZeroValues(subject.model, head.layer, head.head);
  const std::int64_t length = subject.dataset.length;
  const at::Tensor logits =
      subject.model.decoder.Logits(subject.data.Range(begin, end).inputs, nullptr);
  const at::Tensor chosen = logits.argmax(1), logarithms = at::log_softmax(logits, 1);
  // Accessors, because each operation on a tensor takes a microsecond.
  const auto best = chosen.accessor<std::int64_t, 1>();
  const auto log_p = logarithms.accessor<double, 2>();
  PositionCount count;
  for (std::int64_t at = 0; at < (end - begin) * length; ++at) {
    const std::int32_t label = subject.dataset.labels[begin * length + at];
    const std::int64_t wanted = label - subject.labels.offset;
    if (label == kNoTarget || (wanted == 0 && !subject.labels.score_zero)) continue;
    ++count.total;
    count.right += best[at] == wanted;
    count.nll -= log_p[at][wanted];
  }
  weights.copy_(saved);
  count.nll /= static_cast<double>(count.total);
  return count;
}

// 60 long examples with many heads are processed in several pieces of several chunks.
TEST(AblationByPosition, HeadsAreThoseOfAModelWithoutThemInAnyPieces) {
  const at::NoGradGuard no_grad;
  const DataFolder folder;
  for (const bool padded : {false, true}) {
    const Subject subject(
        folder.Job(RandomByPosition({96, 60, 96, padded}),
                   {{"model.heads", std::int64_t{8}}, {"model.max_len", std::int64_t{96}}}, "test",
                   "clean", "rope"));
    const std::int64_t chunk = ChunkExamples(subject.model.config, 96, 1, at::kCPU);
    ASSERT_LT(chunk, 60);
    ASSERT_LT(ChunkExamples(subject.model.config, 96, 8, at::kCPU), chunk);
    const HeadAblationResult result = AblateHeads(subject.model.decoder, subject.data, 0, {});
    const PositionCount intact = CountWithout(subject, {}, 96, 156);
    EXPECT_EQ(result.intact.total, intact.total);
    EXPECT_EQ(result.intact.correct, intact.right);
    EXPECT_NEAR(result.intact.nll, intact.nll, 1e-9);
    for (std::int64_t layer = 0; layer < 2; ++layer) {
      for (const std::int64_t head : {0, 7}) {
        const PositionCount without = CountWithout(subject, {{layer, head}}, 96, 156);
        const PairedScore& score = *result.entries[layer][head];
        EXPECT_EQ(score.correct, without.right) << layer << " " << head;
        EXPECT_EQ(score.correct - result.intact.correct, score.gained - score.lost);
        EXPECT_NEAR(score.nll, without.nll, 1e-9) << layer << " " << head;
      }
    }
  }
}

TEST(AblationByPosition, LayersAreThoseOfAModelWithoutTheirValues) {
  const at::NoGradGuard no_grad;
  const DataFolder folder;
  for (const char* protocol : {"clean", "published"}) {
    const Subject subject(folder.Job(RandomByPosition(), ThreeLayers(), "test", protocol, "rope"));
    const LayerAblationResult result = AblateLayers(subject.model.decoder, subject.data, 0, {});
    ASSERT_EQ(result.layers.size(), 3u);
    for (std::int64_t layer = 0; layer < 3; ++layer) {
      const PositionCount without =
          CountWithout(subject, {{layer, 0}, {layer, 1}, {layer, 2}, {layer, 3}}, 96, 144);
      EXPECT_EQ(result.layers[layer].correct, without.right);
      EXPECT_NEAR(result.layers[layer].nll, without.nll, 1e-9);
    }
  }
}

TEST(AblationByPosition, CumulativeAblationIsThatOfBruteForce) {
  const at::NoGradGuard no_grad;
  const DataFolder folder;
  const Subject subject(folder.Job(RandomByPosition(), ThreeLayers(), "test", "clean", "rope"));
  for (const auto& named : subject.model.parameters.NamedTensors()) {
    at::Tensor tensor = named.tensor;
    if (named.name.find("attention") != std::string::npos) tensor.mul_(3);  // counts differ
  }
  CumulativeAblationOptions options{Method::kZero, 5, 1, 30};
  const CumulativeAblationResult result =
      AblateCumulatively(subject.model.decoder, subject.data, 9, options);
  const PositionCount intact = CountWithout(subject, {}, 96, 126);
  EXPECT_EQ(result.intact.total, intact.total);
  EXPECT_EQ(result.intact.correct, intact.right);
  ASSERT_EQ(result.greedy.heads.size(), 5u);
  ASSERT_EQ(result.random.size(), 1u);
  std::vector<Head> removed, random;
  std::set<std::int64_t> counts;
  for (std::size_t step = 0; step < 5; ++step) {
    Head best;
    std::int64_t fewest = 100'000;
    for (std::int64_t layer = 0; layer < 3; ++layer) {
      for (std::int64_t head = 0; head < 4; ++head) {
        const Head candidate{layer, head};
        if (std::find(removed.begin(), removed.end(), candidate) != removed.end()) continue;
        std::vector<Head> with = removed;
        with.push_back(candidate);
        const std::int64_t right = CountWithout(subject, with, 0, 30).right;
        counts.insert(right);
        if (right >= fewest) continue;
        fewest = right;
        best = candidate;
      }
    }
    removed.push_back(best);
    random.push_back(result.random[0].heads.at(step));
    EXPECT_TRUE(result.greedy.heads[step] == best) << step;
    EXPECT_EQ(result.greedy.correct[step], CountWithout(subject, removed, 96, 126).right) << step;
    EXPECT_EQ(result.random[0].correct[step], CountWithout(subject, random, 96, 126).right) << step;
  }
  EXPECT_GT(counts.size(), 3u) << "the heads differ";
}

TEST(AblationByPosition, CorrectnessHasABitForEveryPosition) {
  const at::NoGradGuard no_grad;
  const DataFolder folder;
  const Subject subject(folder.Job(RandomByPosition({96, 48, 15, true}), {}, "test", "clean"));
  const ExampleCorrectness judged = JudgeExamples(subject.model.decoder, subject.data, 5);
  const at::Tensor best =
      subject.model.decoder.Logits(subject.data.Range(96, 101).inputs, nullptr).argmax(1);
  std::string bits, digits;
  std::int64_t right = 0;
  for (std::int64_t at = 0; at < 75; ++at) {
    const std::int32_t label = subject.dataset.labels[96 * 15 + at];
    const bool is_right = label != kNoTarget && best[at].item<std::int64_t>() == label - 2;
    right += is_right;
    bits += is_right ? '1' : '0';
  }
  bits += "0";
  for (std::size_t at = 0; at < 76; at += 4) {
    digits += "0123456789abcdef"[std::stoi(bits.substr(at, 4), nullptr, 2)];
  }
  EXPECT_EQ(judged.right, digits);
  EXPECT_EQ(judged.intact.correct, right);
  EXPECT_GT(right, 0);
}

}  // namespace
}  // namespace pelab::trainer
