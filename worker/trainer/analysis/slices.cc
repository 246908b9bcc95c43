#include "worker/trainer/analysis/slices.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <utility>

#include "worker/trainer/analysis/replacement_values.h"
#include "worker/trainer/protocol/stop.h"
#include "worker/trainer/train/evaluate.h"

namespace pelab::trainer {
namespace {

// The contribution of a slice to a layer's queries, keys and values.
Decoder::KeysValues AddedBySlice(const Decoder& decoder, const Trace& trace, std::int64_t layer,
                                 std::int64_t slice) {
  const at::Tensor& x = trace.layers[layer].x;
  const auto with = decoder.ProjectLayer(layer, x, trace.input, trace.batch);
  const auto without = decoder.ProjectLayer(layer, x, trace.input, trace.batch, slice);
  return {with.query_rows - without.query_rows, with.key - without.key, with.value - without.value};
}

}  // namespace

SliceReplacement SliceReplacement::Means(const Decoder& decoder, const DeviceData& data,
                                         std::int64_t examples) {
  const at::NoGradGuard no_grad;
  const std::int64_t layers = decoder.config().layers;
  const std::int64_t slices = decoder.LatentSlices();
  struct Sums {
    PositionMean query, key, value;
  };
  std::vector<std::vector<Sums>> sums(layers, std::vector<Sums>(slices));
  const std::int64_t most = ChunkExamples(decoder.config(), data.length(), 1, data.device());
  for (std::int64_t at = 0; at < examples; at += most) {
    ThrowIfStopped();
    const Batch batch = data.Range(at, std::min(examples, at + most)).inputs;
    const Trace trace = RunTraced(decoder, batch);
    for (std::int64_t layer = 0; layer < layers; ++layer) {
      for (std::int64_t slice = 0; slice < slices; ++slice) {
        const Decoder::KeysValues added = AddedBySlice(decoder, trace, layer, slice);
        sums[layer][slice].query.Add(added.query_rows, batch);
        sums[layer][slice].key.Add(added.key, batch);
        sums[layer][slice].value.Add(added.value, batch);
      }
    }
  }
  SliceReplacement replacement;
  for (const std::vector<Sums>& layer : sums) {
    replacement.means_.emplace_back();
    for (const Sums& slice : layer) {
      replacement.means_.back().push_back(
          {slice.query.Finish(), slice.key.Finish(), slice.value.Finish()});
    }
  }
  return replacement;
}

SliceReplacement SliceReplacement::Of(Trace donors) {
  SliceReplacement replacement;
  replacement.donors_ = std::move(donors);
  return replacement;
}

SliceReplacement SliceReplacement::Range(std::int64_t begin, std::int64_t count) const {
  SliceReplacement range = *this;
  if (donors_) range.donors_ = donors_->Range(begin, count);
  return range;
}

std::optional<Decoder::KeysValues> SliceReplacement::Added(const Decoder& decoder,
                                                           std::int64_t layer,
                                                           std::int64_t slice) const {
  if (donors_) return AddedBySlice(decoder, *donors_, layer, slice);
  if (means_.empty()) return std::nullopt;
  return means_[layer][slice];
}

at::Tensor HeadsWithoutSlice(const Decoder& decoder, std::int64_t layer, const at::Tensor& x,
                             const at::Tensor& input, const Batch& batch, std::int64_t slice,
                             const SliceReplacement& replacement) {
  Decoder::KeysValues projected = decoder.ProjectLayer(layer, x, input, batch, slice);
  if (const auto added = replacement.Added(decoder, layer, slice)) {
    projected = {projected.query_rows + added->query_rows,
                 projected.key + added->key,
                 projected.value + added->value,
                 {},
                 {}};
  }
  return decoder.Heads(layer, projected, batch, nullptr);
}

}  // namespace pelab::trainer
