#include "worker/trainer/analysis/fan_out.h"

#include <ATen/ATen.h>

#include <utility>

namespace pelab::trainer {
namespace {

// Repeats `x` (B, …) for `variants`: (V B, …). Does not copy if B is 1.
at::Tensor RepeatWide(const at::Tensor& x, std::int64_t variants) {
  if (!x.defined()) return x;
  std::vector<std::int64_t> sizes = x.sizes().vec();
  sizes.insert(sizes.begin(), variants);
  return x.unsqueeze(0).expand(sizes).flatten(0, 1);
}

// Queries of the wide batch. Keys and values are computed from `x`, or repeated for every variant
// if the trace has them.
Decoder::KeysValues ProjectWide(const Decoder& decoder, const Trace& trace, std::int64_t layer,
                                const Residual& x, const Batch& wide, std::int64_t variants) {
  const LayerTrace& kept = trace.layers[layer];
  if (!kept.key.defined()) return decoder.ProjectLayer(layer, x, trace.input, wide);
  // With an input of no examples, only the queries are computed.
  const Decoder::KeysValues projected =
      decoder.ProjectLayer(layer, x, trace.input.narrow(0, 0, 0), wide);
  return {projected.query_rows,
          RepeatWide(kept.key, variants),
          RepeatWide(kept.value, variants),
          {},
          {}};
}

}  // namespace

Trace Trace::Range(std::int64_t begin, std::int64_t count) const {
  const std::int64_t examples = batch.tokens.size(0);
  const auto part = [&](const at::Tensor& x) {
    if (!x.defined()) return x;
    const std::int64_t rows = x.size(0) / examples;  // of an example
    return x.narrow(0, begin * rows, count * rows);
  };
  Trace range{{part(batch.tokens), part(batch.lengths)}, part(input), {}, part(logits)};
  for (const LayerTrace& layer : layers) {
    range.layers.push_back(
        {part(layer.x), part(layer.heads), part(layer.x_mid), part(layer.key), part(layer.value)});
  }
  return range;
}

Trace RunTraced(const Decoder& decoder, const Batch& batch, const Onward& onward) {
  Trace trace{batch, decoder.Embed(batch), {}, {}};
  Residual x = trace.input;
  for (std::int64_t layer = 0; layer < decoder.config().layers; ++layer) {
    const Decoder::KeysValues projected = decoder.ProjectLayer(layer, x, trace.input, batch);
    LayerTrace kept;
    kept.x = x.x;
    kept.heads = decoder.Heads(layer, projected, batch, nullptr);
    Residual x_mid = decoder.AfterAttention(layer, x, kept.heads, nullptr);
    kept.x_mid = x_mid.x;
    if (decoder.config().kv_source == KvSource::kInput) {
      kept.key = projected.key;
      kept.value = projected.value;
    }
    if (onward) x_mid = onward(layer, &kept);
    trace.layers.push_back(std::move(kept));
    x = decoder.AfterFeedForward(layer, x_mid, nullptr);
  }
  trace.logits = decoder.ReadOut(x, batch);
  return trace;
}

Residual WithoutHeads(const Decoder& decoder, const Trace& trace, std::int64_t layer,
                      const std::vector<std::int64_t>& heads, const at::Tensor& replacement) {
  const LayerTrace& kept = trace.layers[layer];
  const at::Tensor change = replacement.defined() ? kept.heads - replacement : kept.heads;
  return decoder.WithoutHeads(layer, kept.x_mid, change, heads);
}

at::Tensor GoOn(const Decoder& decoder, const Trace& trace, std::int64_t layer,
                const Residual& x_mid, const HeadSets& sets, const Replacement& replacement) {
  const std::int64_t examples = trace.batch.tokens.size(0);
  const std::int64_t variants = x_mid.x.size(0) / examples;
  const Batch wide = {RepeatWide(trace.batch.tokens, variants),
                      RepeatWide(trace.batch.lengths, variants)};
  Residual x = decoder.AfterFeedForward(layer, x_mid, nullptr);
  for (std::int64_t later = layer + 1; later < decoder.config().layers; ++later) {
    at::Tensor heads =
        decoder.Heads(later, ProjectWide(decoder, trace, later, x, wide, variants), wide, nullptr);
    if (!sets.empty()) {
      heads = ReplaceHeads(heads, sets[later], replacement.At(later), decoder.config().head_dim());
    }
    x = decoder.AfterFeedForward(later, decoder.AfterAttention(later, x, heads, nullptr), nullptr);
  }
  const at::Tensor logits = decoder.ReadOut(x, wide);
  return logits.view({variants, -1, logits.size(1)});
}

}  // namespace pelab::trainer
