// A data set on its device, in batches.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "worker/trainer/model/decoder.h"
#include "worker/trainer/task/dataset.h"

namespace pelab::trainer {

// What PyTorch calls ignore_index: examples of this class enter neither loss nor accuracy.
inline constexpr std::int64_t kNoIgnoredClass = -100;

struct LabelledBatch {
  Batch inputs;
  at::Tensor classes;  // (B), 64-bit
};

// The whole data set stays on the device. Immutable; used from one thread.
class DeviceData {
 public:
  DeviceData(const Dataset& data, const LabelSpace& labels, at::Device device);

  std::int64_t train_examples() const { return train_examples_; }
  std::int64_t size() const { return size_; }
  std::int64_t length() const;  // T
  at::Device device() const;
  std::int64_t ignored_class() const { return ignored_class_; }

  // Examples [begin, end).
  LabelledBatch Range(std::int64_t begin, std::int64_t end) const;
  // The examples at `indices` ((B), 64-bit, on the device).
  LabelledBatch At(const at::Tensor& indices) const;
  at::Tensor ClassesAt(const at::Tensor& indices) const;
  // The training examples' order in `epoch`: a permutation from the counter-based generator at (seed, "train/order",
  // epoch), on the device.
  at::Tensor Order(std::int64_t seed, std::int64_t epoch) const;

 private:
  std::int64_t train_examples_;
  std::int64_t size_;
  std::int64_t ignored_class_;
  at::Tensor tokens_;   // (N, T), 32-bit
  at::Tensor lengths_;  // (N), 64-bit; undefined where nothing is padded
  at::Tensor classes_;  // (N), 64-bit
};

}  // namespace pelab::trainer
