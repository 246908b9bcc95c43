#include "worker/trainer/analysis/layer_ablation.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "worker/trainer/analysis/fan_out.h"
#include "worker/trainer/protocol/stop.h"
#include "worker/trainer/train/evaluate.h"

namespace pelab::trainer {
namespace {

// (1, B, C): the logits with every head of `layer` replaced.
at::Tensor WithoutLayer(const Decoder& decoder, const Trace& trace, std::int64_t layer,
                        const Replacement& replacement) {
  const LayerTrace& kept = trace.layers[layer];
  const at::Tensor heads = replacement.is_zero() ? at::zeros_like(kept.heads)
                                                 : replacement.At(layer).expand_as(kept.heads);
  return GoOn(decoder, trace, layer, decoder.AfterAttention(layer, kept.x, heads, nullptr).x, {},
              {});
}

}  // namespace

LayerAblationOptions LayerAblationOptionsFrom(const experiment::Analysis& analysis) {
  LayerAblationOptions options;
  options.method =
      MethodFrom(std::get<std::string>(analysis.parameters.at("layer_ablation.method")));
  options.all_data = std::get<std::string>(analysis.parameters.at("layer_ablation.data")) == "all";
  options.max_examples =
      std::get<std::int64_t>(analysis.parameters.at("layer_ablation.max_examples"));
  return options;
}

LayerAblationResult AblateLayers(const Decoder& decoder, const DeviceData& data,
                                 std::int64_t data_seed, const LayerAblationOptions& options) {
  const at::NoGradGuard no_grad;
  const ExampleRange range = ChooseExamples(data, options.all_data, options.max_examples);
  const ReplacementValues replacement_values(decoder, data, options.method, data_seed,
                                             options.max_examples);
  const std::int64_t chunk = ChunkExamples(decoder.config(), data.length(), 1, data.device());
  IntactTally intact;
  std::vector<PairedTally> tallies(decoder.config().layers);
  for (std::int64_t at = range.begin; at < range.end; at += chunk) {
    ThrowIfStopped();
    const std::int64_t to = std::min(range.end, at + chunk);
    const LabeledBatch batch = data.Range(at, to);
    const Trace trace = RunTraced(decoder, batch.inputs);
    const Replacement replacement = replacement_values.For(at, to);
    const Predictions whole = Predict(trace.logits, batch.classes, data.ignored_class());
    intact.Add(whole, batch.classes, data.ignored_class());
    for (std::size_t layer = 0; layer < tallies.size(); ++layer) {
      const at::Tensor ablated =
          WithoutLayer(decoder, trace, static_cast<std::int64_t>(layer), replacement);
      tallies[layer].Add(whole, Predict(ablated, batch.classes, data.ignored_class()));
    }
  }
  LayerAblationResult result{intact.Finish(), {}};
  for (const PairedTally& tally : tallies) {
    for (const PairedScore& score : tally.Finish(result.intact.total)) {
      result.layers.push_back(score);
    }
  }
  return result;
}

}  // namespace pelab::trainer
