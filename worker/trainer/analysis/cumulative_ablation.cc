#include "worker/trainer/analysis/cumulative_ablation.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <utility>

#include "core/base/random.h"
#include "worker/trainer/analysis/fan_out.h"
#include "worker/trainer/analysis/sums.h"
#include "worker/trainer/limits.h"
#include "worker/trainer/protocol/error.h"
#include "worker/trainer/protocol/stop.h"
#include "worker/trainer/train/evaluate.h"

namespace pelab::trainer {
namespace {

std::vector<Head> AllHeads(const ModelConfig& config) {
  std::vector<Head> heads;
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    for (std::int64_t head = 0; head < config.heads; ++head) heads.push_back({layer, head});
  }
  return heads;
}

HeadSets SetsOf(const std::vector<Head>& heads, std::size_t count, std::int64_t layers) {
  HeadSets sets(layers);
  for (std::size_t i = 0; i < count; ++i) sets[heads[i].layer].push_back(heads[i].head);
  for (std::vector<std::int64_t>& set : sets) std::sort(set.begin(), set.end());
  return sets;
}

// Removes heads one after another and counts over the same examples.
class Removal {
 public:
  Removal(const Decoder& decoder, const DeviceData& data,
          const ReplacementValues& replacement_values)
      : decoder_(decoder),
        data_(data),
        replacement_values_(replacement_values),
        heads_(decoder.config().heads),
        chunk_(ChunkExamples(decoder.config(), data.length(), 1, data.device())),
        wide_(ChunkExamples(decoder.config(), data.length(), heads_, data.device())) {}

  // The head that the greedy order removes next, after `removed`.
  Head Next(const std::vector<Head>& removed, ExampleRange range) const {
    const HeadSets sets = SetsOf(removed, removed.size(), decoder_.config().layers);
    std::vector<at::Tensor> correct(decoder_.config().layers);  // (V), 64-bit
    for (std::int64_t at = range.begin; at < range.end; at += chunk_) {
      CountVariants(sets, at, std::min(range.end, at + chunk_), &correct);
    }
    Head best;
    std::int64_t fewest = -1;
    for (std::size_t layer = 0; layer < correct.size(); ++layer) {
      if (!correct[layer].defined()) continue;  // no head of this layer is left
      const at::Tensor host = correct[layer].cpu();
      const std::vector<std::int64_t> left = Left(sets[layer]);
      for (std::size_t i = 0; i < left.size(); ++i) {
        const std::int64_t count = host.data_ptr<std::int64_t>()[i];
        if (fewest >= 0 && count >= fewest) continue;
        fewest = count;
        best = {static_cast<std::int64_t>(layer), left[i]};
      }
    }
    return best;
  }

  RemovalCurve Measure(std::vector<Head> heads, ExampleRange range) const {
    std::vector<at::Tensor> correct(heads.size());  // scalars
    for (std::int64_t at = range.begin; at < range.end; at += chunk_) {
      const std::int64_t to = std::min(range.end, at + chunk_);
      const LabeledBatch batch = data_.Range(at, to);
      const Replacement replacement = replacement_values_.For(at, to);
      for (std::size_t i = 0; i < heads.size(); ++i) {
        ThrowIfStopped();
        const at::Tensor logits = LogitsReplacing(
            decoder_, batch.inputs, SetsOf(heads, i + 1, decoder_.config().layers), replacement);
        const at::Tensor count = CountCorrect(logits, batch.classes, data_.ignored_class())[0];
        AddTo(count, &correct[i]);
      }
    }
    RemovalCurve curve{std::move(heads), {}};
    for (const at::Tensor& count : correct) {
      curve.correct.push_back(count.defined() ? count.item().toLong() : 0);
    }
    return curve;
  }

 private:
  std::vector<std::int64_t> Left(const std::vector<std::int64_t>& removed) const {
    std::vector<std::int64_t> left;
    for (std::int64_t head = 0; head < heads_; ++head) {
      if (!std::binary_search(removed.begin(), removed.end(), head)) left.push_back(head);
    }
    return left;
  }

  // For every layer and every head that is left in it, adds the number of examples of [begin, end)
  // that are right without that head.
  void CountVariants(const HeadSets& sets, std::int64_t begin, std::int64_t end,
                     std::vector<at::Tensor>* correct) const {
    const LabeledBatch batch = data_.Range(begin, end);
    const Replacement replacement = replacement_values_.For(begin, end);
    const Trace base = RunTraced(decoder_, batch.inputs, [&](std::int64_t layer, LayerTrace* kept) {
      if (!sets[layer].empty()) {
        const at::Tensor heads = ReplaceHeads(kept->heads, sets[layer], replacement.At(layer),
                                              decoder_.config().head_dim());
        kept->x_mid = decoder_.AfterAttention(layer, kept->x, heads, nullptr).x;
      }
      return kept->x_mid;
    });
    for (std::size_t layer = 0; layer < correct->size(); ++layer) {
      const std::vector<std::int64_t> left = Left(sets[layer]);
      for (std::int64_t at = 0; at < end - begin && !left.empty(); at += wide_) {
        ThrowIfStopped();
        const std::int64_t count = std::min(wide_, end - begin - at);
        const std::int64_t rows = batch.per_example();
        const at::Tensor right =
            Right(base.Range(at, count), static_cast<std::int64_t>(layer), left, sets,
                  replacement.Range(at, count), batch.classes.narrow(0, at * rows, count * rows));
        AddTo(right, &(*correct)[layer]);
      }
    }
  }

  // (V): the number of right examples if each head of `left` is removed in addition to `sets`.
  at::Tensor Right(const Trace& base, std::int64_t layer, const std::vector<std::int64_t>& left,
                   const HeadSets& sets, const Replacement& replacement,
                   const at::Tensor& classes) const {
    const Residual x_mid = WithoutHeads(decoder_, base, layer, left, replacement.At(layer));
    const at::Tensor logits = GoOn(decoder_, base, layer, x_mid, sets, replacement);
    return Predict(logits, classes, data_.ignored_class()).right.sum(1);
  }

  const Decoder& decoder_;
  const DeviceData& data_;
  const ReplacementValues& replacement_values_;
  std::int64_t heads_;
  std::int64_t chunk_;  // examples of one pass
  std::int64_t wide_;   // examples whose variants are computed together
};

std::vector<Head> RandomOrder(const ModelConfig& config, std::int64_t data_seed, std::int64_t order,
                              std::int64_t steps) {
  std::vector<Head> heads = AllHeads(config);
  CounterRandom random(static_cast<std::uint64_t>(data_seed), "ablation/order",
                       static_cast<std::uint64_t>(order));
  for (std::size_t i = heads.size(); i > 1; --i) {
    std::swap(heads[i - 1], heads[random.Below(static_cast<std::uint32_t>(i))]);
  }
  heads.resize(steps);
  return heads;
}

IntactScore ScoreIntact(const Decoder& decoder, const DeviceData& data, ExampleRange range) {
  const Score score = Evaluate(decoder, data, range.begin, range.end);
  return {score.total, score.correct, score.loss};
}

}  // namespace

CumulativeAblationOptions CumulativeAblationOptionsFrom(const experiment::Analysis& analysis) {
  const auto number = [&](const char* name) {
    return std::get<std::int64_t>(analysis.parameters.at(name));
  };
  CumulativeAblationOptions options;
  options.method =
      MethodFrom(std::get<std::string>(analysis.parameters.at("cumulative_ablation.method")));
  options.steps = number("cumulative_ablation.steps");
  options.orders = number("cumulative_ablation.orders");
  options.max_examples = number("cumulative_ablation.max_examples");
  return options;
}

void CheckRemovals(const CumulativeAblationOptions& options, const experiment::Job& job) {
  const std::int64_t steps =
      std::min(options.steps, job.Int("model.layers") * job.Int("model.heads"));
  if (steps * (options.orders + 1) <= limits::kRemovals) return;
  throw TrainerError(ErrorKind::kBadSpec,
                     "cumulative_ablation.orders " + std::to_string(options.orders) + " of " +
                         std::to_string(steps) + " heads; allowed: at most " +
                         std::to_string(limits::kRemovals / steps - 1) + " random orders");
}

CumulativeAblationResult AblateCumulatively(const Decoder& decoder, const DeviceData& data,
                                            std::int64_t data_seed,
                                            const CumulativeAblationOptions& options) {
  const at::NoGradGuard no_grad;
  const ModelConfig& config = decoder.config();
  const std::int64_t steps = std::min(options.steps, config.layers * config.heads);
  const ExampleRange test = ChooseExamples(data, false, options.max_examples);
  const ExampleRange training = {0, options.max_examples == 0
                                        ? data.train_examples()
                                        : std::min(data.train_examples(), options.max_examples)};
  const ReplacementValues replacement_values(decoder, data, options.method, data_seed,
                                             options.max_examples);
  const Removal removal(decoder, data, replacement_values);
  std::vector<Head> greedy;
  while (static_cast<std::int64_t>(greedy.size()) < steps) {
    greedy.push_back(removal.Next(greedy, training));
  }
  CumulativeAblationResult result{
      ScoreIntact(decoder, data, test), removal.Measure(std::move(greedy), test), {}};
  for (std::int64_t order = 0; order < options.orders; ++order) {
    result.random.push_back(removal.Measure(RandomOrder(config, data_seed, order, steps), test));
  }
  return result;
}

}  // namespace pelab::trainer
