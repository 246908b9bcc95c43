// Batches without the padding that nobody reads. Where a model depends on nothing at the positions of padding
// (ModelConfig::reads_padding), a batch's examples stand in the order of their lengths and go through the model in sections, each
// only as long as its longest example: the same step within rounding, as each example keeps its place in the batch and drops
// what it would drop there with all of its padding.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "worker/trainer/config/config.h"
#include "worker/trainer/train/batches.h"

namespace pelab::trainer {

// Examples [begin, begin + count) of a batch, of which the first `positions` are computed.
struct Section {
  std::int64_t begin = 0;
  std::int64_t count = 0;
  std::int64_t positions = 0;
};
using Sections = std::vector<Section>;

// Whether examples of this data set are ordered by length for this model, and whether their padding is then left out: for one
// member alone (model/members.h), since others would be longer or shorter.
bool OrdersByLength(const ModelConfig& config, const DeviceData& data);
bool LeavesPaddingOut(const ModelConfig& config, const DeviceData& data);

// Reorders each batch of `batch_size` (the last may have fewer) of every member's `order` (M, N), on the CPU: the shortest
// examples first, those of equal length as they were.
void OrderByLength(const DeviceData& data, std::int64_t batch_size, const at::Tensor& order);

// How many positions are computed where example `index` is the longest: its tokens, rounded up to whole eights within the data's
// length.
std::int64_t PositionsOf(const DeviceData& data, std::int64_t index);

// Of the examples at indices[0 … count-1], shortest first: at most 8 sections, of at least 32 examples where there are as
// many.
Sections SectionsOf(const DeviceData& data, const std::int64_t* indices, std::int64_t count);

// The batches of an epoch.
struct EpochBatches {
  at::Tensor indices;              // (members, examples), 64-bit, on the device
  std::vector<Sections> sections;  // of each batch, in their order

  at::Tensor Batch(std::int64_t batch) const;  // (members, its examples)
};

// The sections in parts of at most so many positions as `most_examples` of `length` have (0: no limit but that of SkipPositions),
// each of one section.
Sections InParts(const Sections& sections, std::int64_t most_examples, std::int64_t length);

// How a training's examples fall into batches.
class Batching {
 public:
  // `data` outlives it; `seeds` are its members'. Padding that nobody reads is left out unless `all_positions`. With
  // `alike_epochs` above 0 all batches of so many epochs that have as many examples have the same sections, long enough for
  // each of them.
  Batching(const ModelConfig& config, const DeviceData* data,
           const std::vector<std::int64_t>& seeds, std::int64_t batch_size, bool all_positions,
           std::int64_t alike_epochs);

  std::int64_t batches() const;  // of an epoch
  EpochBatches Of(std::int64_t epoch) const;

 private:
  at::Tensor OrderOf(std::int64_t epoch) const;  // (members, examples), on the CPU
  std::vector<Sections> SectionsIn(const at::Tensor& order) const;

  const DeviceData& data_;
  std::vector<std::int64_t> seeds_;
  std::int64_t batch_size_;
  bool by_length_;
  bool sections_;
  std::vector<Sections> alike_;  // of each batch of every epoch; empty: its own
};

}  // namespace pelab::trainer
