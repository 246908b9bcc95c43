// Leaves out padding that the model does not read. If no result depends on padded positions
// (ModelConfig::reads_padding is false), the examples of each batch are sorted by length. If
// LeavesPaddingOut allows it, the sorted batch goes through the model in sections, each only as
// long as its longest example. Sections change a step only by rounding: without them, the examples
// have the same order, and dropout drops the same elements.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "worker/trainer/config/config.h"
#include "worker/trainer/train/batches.h"

namespace pelab::trainer {

// Examples [begin, begin + count) of a batch. Only the first `positions` of each are computed.
struct Section {
  std::int64_t begin = 0;
  std::int64_t count = 0;
  std::int64_t positions = 0;
};
using Sections = std::vector<Section>;

// OrdersByLength: whether the examples of this data set are ordered by length for this model.
// LeavesPaddingOut: whether their padding is then left out. This happens only with one member
// (parameters/members.h), because the examples of other members have other lengths, and not if the
// results of the PE may depend on how many positions there are.
bool OrdersByLength(const ModelConfig& config, const DeviceData& data);
bool LeavesPaddingOut(const ModelConfig& config, const DeviceData& data);

// Sorts the examples of each batch of `batch_size` (the last may be smaller) in every member's
// `order` (M, N), on the CPU. The shortest examples come first; those of equal length keep their
// order.
void OrderByLength(const DeviceData& data, std::int64_t batch_size, const at::Tensor& order);

// The number of positions to compute if example `index` is the longest: its number of tokens,
// rounded up to a multiple of 8, at most the data's length.
std::int64_t PositionsOf(const DeviceData& data, std::int64_t index);

// Divides the examples at indices[0 … count-1], shortest first, into at most 8 sections. Each has
// at least 32 examples, if there are that many.
Sections SectionsOf(const DeviceData& data, const std::int64_t* indices, std::int64_t count);

// The batches of an epoch.
struct EpochBatches {
  at::Tensor indices;              // (members, examples), 64-bit, on the device
  std::vector<Sections> sections;  // of each batch, in order

  at::Tensor Batch(std::int64_t batch) const;  // (members, examples of the batch)
};

// Divides the sections into parts, each within one section. A part of several examples has at most
// most_examples * length positions, and no more rows than SkipPositions allows. If `most_examples`
// is 0, only the limit of SkipPositions applies.
Sections InParts(const Sections& sections, std::int64_t most_examples, std::int64_t length);

// Divides the examples of a training into batches.
class Batching {
 public:
  // `data` must outlive this object; `seeds` are those of its members. Padding that the model does
  // not read is left out, unless `all_positions` is set. If `alike_epochs` is above 0, all batches
  // with the same number of examples have the same sections in every epoch. The sections are long
  // enough for the first `alike_epochs` epochs; do not ask for later ones.
  Batching(const ModelConfig& config, const DeviceData* data,
           const std::vector<std::int64_t>& seeds, std::int64_t batch_size, bool all_positions,
           std::int64_t alike_epochs);

  std::int64_t batches() const;  // per epoch
  EpochBatches Of(std::int64_t epoch) const;

 private:
  at::Tensor OrderOf(std::int64_t epoch) const;  // (members, examples), on the CPU
  std::vector<Sections> SectionsIn(const at::Tensor& order) const;

  const DeviceData& data_;
  std::vector<std::int64_t> seeds_;
  std::int64_t batch_size_;
  bool by_length_;
  bool sections_;
  std::vector<Sections> alike_;  // of each batch, for every epoch; empty: each epoch has its own
};

}  // namespace pelab::trainer
