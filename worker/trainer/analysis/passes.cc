#include "worker/trainer/analysis/passes.h"

#include <ATen/ATen.h>

namespace pelab::trainer {

Replacement Replacement::Range(std::int64_t begin, std::int64_t count) const {
  std::vector<at::Tensor> layers;
  for (const at::Tensor& layer : layers_) {
    layers.push_back(layer.size(0) == 1 ? layer : layer.narrow(0, begin, count));
  }
  return Replacement(std::move(layers));
}

at::Tensor ReplaceHeads(const at::Tensor& heads, const std::vector<std::int64_t>& set,
                        const at::Tensor& replacement, std::int64_t head_dim) {
  if (set.empty()) return heads;
  at::Tensor replaced = heads.clone();
  const std::int64_t examples = replacement.defined() ? replacement.size(0) : 1;
  const at::Tensor by_variant = replaced.view({-1, examples, heads.size(1), heads.size(2)});
  for (const std::int64_t head : set) {
    at::Tensor columns = by_variant.narrow(3, head * head_dim, head_dim);
    if (replacement.defined()) {
      columns.copy_(replacement.narrow(2, head * head_dim, head_dim));
    } else {
      columns.zero_();
    }
  }
  return replaced;
}

at::Tensor LogitsReplacing(const Decoder& decoder, const Batch& batch, const HeadSets& sets,
                           const Replacement& replacement) {
  const at::Tensor input = decoder.Embed(batch);
  Residual x = input;
  for (std::int64_t layer = 0; layer < decoder.config().layers; ++layer) {
    const at::Tensor heads = ReplaceHeads(
        decoder.Heads(layer, decoder.ProjectLayer(layer, x, input, batch), batch, nullptr),
        sets[layer], replacement.At(layer), decoder.config().head_dim());
    x = decoder.AfterFeedForward(layer, decoder.AfterAttention(layer, x, heads, nullptr), nullptr);
  }
  return decoder.ReadOut(x, batch);
}

}  // namespace pelab::trainer
