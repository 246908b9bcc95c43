#include "worker/trainer/analysis/head_ablation.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "worker/trainer/analysis/fan_out.h"
#include "worker/trainer/protocol/error.h"
#include "worker/trainer/protocol/stop.h"
#include "worker/trainer/train/evaluate.h"

namespace pelab::trainer {
namespace {

using Visit = std::function<void(std::int64_t layer, const at::Tensor& logits)>;  // (E, B, C)

std::vector<std::int64_t> FirstEntries(std::int64_t count) {
  std::vector<std::int64_t> entries(count);
  std::iota(entries.begin(), entries.end(), std::int64_t{0});
  return entries;
}

// The entry that stays ablated in earlier layers under the authors' restore policy; none if this
// entry does not exist.
std::optional<std::int64_t> StaysAblated(const Decoder& decoder, const Ablation& ablation) {
  const std::int64_t last = decoder.config().heads - 1;
  if (ablation.hygiene == Hygiene::kClean || last >= EntriesOf(decoder, ablation.target)) return {};
  return last;
}

// (B, T', D): the heads' outputs of a layer with one entry ablated. `x` is the input of the layer,
// `heads` are its outputs without ablation.
at::Tensor HeadsWithout(const Decoder& decoder, std::int64_t layer, std::int64_t entry,
                        const at::Tensor& x, const at::Tensor& input, const at::Tensor& heads,
                        const Batch& batch, const Ablation& ablation) {
  if (ablation.target == Target::kLatentSlice) {
    return HeadsWithoutSlice(decoder, layer, x, input, batch, entry, ablation.slices);
  }
  return ReplaceHeads(heads, {entry}, ablation.heads.At(layer), decoder.config().head_dim());
}

// (V B, T', D): x_mid of a layer, with one of `entries` ablated in each variant.
Residual WithoutEntries(const Decoder& decoder, const Trace& trace, std::int64_t layer,
                        const std::vector<std::int64_t>& entries, const Ablation& ablation) {
  if (ablation.target == Target::kHead) {
    return WithoutHeads(decoder, trace, layer, entries, ablation.heads.At(layer));
  }
  const at::Tensor& x = trace.layers[layer].x;
  std::vector<at::Tensor> variants;
  for (const std::int64_t entry : entries) {
    const at::Tensor heads =
        HeadsWithoutSlice(decoder, layer, x, trace.input, trace.batch, entry, ablation.slices);
    variants.push_back(decoder.AfterAttention(layer, x, heads, nullptr).x);
  }
  return at::cat(variants);
}

// The pass from which the variants of a layer start: the intact pass, or the one with the entries
// that stay ablated.
Trace RunBase(const Decoder& decoder, const Batch& batch, const Ablation& ablation) {
  const std::optional<std::int64_t> stays = StaysAblated(decoder, ablation);
  if (!stays) return RunTraced(decoder, batch);
  const at::Tensor input = decoder.Embed(batch);
  return RunTraced(decoder, batch, [&](std::int64_t layer, LayerTrace* kept) {
    const at::Tensor heads =
        HeadsWithout(decoder, layer, *stays, kept->x, input, kept->heads, batch, ablation);
    return decoder.AfterAttention(layer, kept->x, heads, nullptr).x;
  });
}

// (B, C): a whole pass with `entry` of `ablated_layer` ablated.
at::Tensor LogitsWithout(const Decoder& decoder, const Batch& batch, std::int64_t ablated_layer,
                         std::int64_t entry, const Ablation& ablation) {
  const std::optional<std::int64_t> stays = StaysAblated(decoder, ablation);
  const at::Tensor input = decoder.Embed(batch);
  Residual x = input;
  for (std::int64_t layer = 0; layer < decoder.config().layers; ++layer) {
    at::Tensor heads =
        decoder.Heads(layer, decoder.ProjectLayer(layer, x, input, batch), batch, nullptr);
    if (layer == ablated_layer || (layer < ablated_layer && stays)) {
      heads = HeadsWithout(decoder, layer, layer == ablated_layer ? entry : *stays, x.x, input,
                           heads, batch, ablation);
    }
    x = decoder.AfterFeedForward(layer, decoder.AfterAttention(layer, x, heads, nullptr), nullptr);
  }
  return decoder.ReadOut(x, batch);
}

// Calls `visit` for every layer. The variants of a few examples are computed together.
void FanOut(const Decoder& decoder, const Trace& base, const Ablation& ablation,
            const Visit& visit) {
  const std::vector<std::int64_t> entries = FirstEntries(EntriesOf(decoder, ablation.target));
  const std::int64_t examples = base.batch.tokens.size(0);
  const std::int64_t most =
      ChunkExamples(decoder.config(), base.batch.tokens.size(1),
                    static_cast<std::int64_t>(entries.size()), base.batch.tokens.device());
  for (std::int64_t layer = 0; layer < decoder.config().layers; ++layer) {
    std::vector<at::Tensor> logits;
    for (std::int64_t at = 0; at < examples; at += most) {
      ThrowIfStopped();
      const std::int64_t count = std::min(most, examples - at);
      const Trace part = base.Range(at, count);
      const Residual x_mid =
          WithoutEntries(decoder, part, layer, entries, ablation.Range(at, count));
      logits.push_back(GoOn(decoder, part, layer, x_mid, {}, {}));
    }
    visit(layer, at::cat(logits, 1));
  }
}

// Supplies the ablation for each batch.
class AblationSource {
 public:
  AblationSource(const Decoder& decoder, const DeviceData& data, std::int64_t data_seed,
                 const HeadAblationOptions& options)
      : decoder_(decoder),
        data_(data),
        data_seed_(data_seed),
        max_examples_(options.max_examples),
        method_(options.method) {
    ablation_.hygiene = options.hygiene;
    if (options.authors_target && decoder.LatentSlices() > 0) {
      ablation_.target = Target::kLatentSlice;
    }
    if (method_ == Method::kMean) TakeMeans();
  }

  // Calls `visit` for the examples of the range, batch by batch. Ablation with zeros works with
  // chunks in any order and without padding (ForChunks). Other replacement values cover every
  // position and, with kResample, differ by example, so they need whole examples in order.
  void ForBatches(const ExampleRange& range,
                  const std::function<void(const LabeledBatch&, const Ablation&)>& visit) const {
    if (method_ == Method::kZero) {
      return ForChunks(decoder_, data_, range.begin, range.end,
                       [&](const LabeledBatch& batch) { visit(batch, ablation_); });
    }
    const std::int64_t chunk = ChunkExamples(decoder_.config(), data_.length(), 1, data_.device());
    for (std::int64_t at = range.begin; at < range.end; at += chunk) {
      const std::int64_t to = std::min(range.end, at + chunk);
      visit(data_.Range(at, to), For(at, to));
    }
  }

 private:
  // The ablation for examples [begin, end) of the data set.
  Ablation For(std::int64_t begin, std::int64_t end) const {
    if (method_ != Method::kResample) return ablation_;
    Ablation ablation = ablation_;
    Trace donors = TraceDonors(decoder_, data_, data_seed_, begin, end);
    if (ablation.target == Target::kHead) {
      ablation.heads = HeadsAsReplacement(donors);
    } else {
      ablation.slices = SliceReplacement::Of(std::move(donors));
    }
    return ablation;
  }

  void TakeMeans() {
    const std::int64_t examples = MeanExamples(data_, max_examples_);
    if (ablation_.target == Target::kHead) {
      ablation_.heads = MeanHeads(decoder_, data_, examples);
    } else {
      ablation_.slices = SliceReplacement::Means(decoder_, data_, examples);
    }
  }

  const Decoder& decoder_;
  const DeviceData& data_;
  std::int64_t data_seed_;
  std::int64_t max_examples_;
  Method method_;
  Ablation ablation_;
};

std::string Choice(const experiment::Analysis& analysis, const char* name) {
  return std::get<std::string>(analysis.parameters.at(name));
}

}  // namespace

std::int64_t EntriesOf(const Decoder& decoder, Target target) {
  const std::int64_t heads = decoder.config().heads;
  return target == Target::kHead ? heads : std::min(heads, decoder.LatentSlices());
}

at::Tensor AblatedLogits(const Decoder& decoder, const Batch& batch, const Ablation& ablation,
                         at::Tensor* base_logits) {
  const at::NoGradGuard no_grad;
  const Trace base = RunBase(decoder, batch, ablation);
  if (base_logits != nullptr) *base_logits = base.logits;
  std::vector<at::Tensor> layers;
  FanOut(decoder, base, ablation,
         [&](std::int64_t, const at::Tensor& logits) { layers.push_back(logits); });
  return at::stack(layers);
}

at::Tensor AblatedLogitsNaive(const Decoder& decoder, const Batch& batch,
                              const Ablation& ablation) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> layers;
  for (std::int64_t layer = 0; layer < decoder.config().layers; ++layer) {
    std::vector<at::Tensor> entries;
    for (std::int64_t entry = 0; entry < EntriesOf(decoder, ablation.target); ++entry) {
      entries.push_back(LogitsWithout(decoder, batch, layer, entry, ablation));
    }
    layers.push_back(at::stack(entries));
  }
  return at::stack(layers);
}

HeadAblationOptions HeadAblationOptionsFrom(const experiment::Analysis& analysis) {
  HeadAblationOptions options;
  options.method = MethodFrom(Choice(analysis, "head_ablation.method"));
  options.authors_target = Choice(analysis, "head_ablation.target") == "authors";
  options.hygiene =
      Choice(analysis, "head_ablation.hygiene") == "authors" ? Hygiene::kAuthors : Hygiene::kClean;
  options.all_data = Choice(analysis, "head_ablation.data") == "all";
  options.max_examples =
      std::get<std::int64_t>(analysis.parameters.at("head_ablation.max_examples"));
  return options;
}

HeadAblationResult AblateHeads(const Decoder& decoder, const DeviceData& data,
                               std::int64_t data_seed, const HeadAblationOptions& options) {
  const at::NoGradGuard no_grad;
  const ExampleRange range = ChooseExamples(data, options.all_data, options.max_examples);
  const AblationSource source(decoder, data, data_seed, options);
  IntactTally intact;
  std::vector<PairedTally> tallies(decoder.config().layers);
  const auto add = [&](const LabeledBatch& batch, const Ablation& ablation) {
    const Trace base = RunBase(decoder, batch.inputs, ablation);
    const at::Tensor logits =
        StaysAblated(decoder, ablation) ? decoder.Logits(batch.inputs, nullptr) : base.logits;
    const Predictions whole = Predict(logits, batch.classes, data.ignored_class());
    intact.Add(whole, batch.classes, data.ignored_class());
    FanOut(decoder, base, ablation, [&](std::int64_t layer, const at::Tensor& ablated) {
      tallies[layer].Add(whole, Predict(ablated, batch.classes, data.ignored_class()));
    });
  };
  source.ForBatches(range, add);
  HeadAblationResult result{intact.Finish(), {}};
  for (const PairedTally& tally : tallies) {
    const std::vector<PairedScore> scores = tally.Finish(result.intact.total);
    result.entries.emplace_back(scores.begin(), scores.end());
    result.entries.back().resize(decoder.config().heads);
  }
  return result;
}

}  // namespace pelab::trainer
