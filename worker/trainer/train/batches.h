// A data set on its device, in batches.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "worker/trainer/model/decoder.h"
#include "worker/trainer/task/dataset.h"

namespace pelab::trainer {

// What PyTorch calls ignore_index: examples of this class enter neither loss nor accuracy.
inline constexpr std::int64_t kNoIgnoredClass = -100;

struct LabelledBatch {
  Batch inputs;
  at::Tensor classes;  // (B), 64-bit
};

// The whole data set stays on the device; of several members (model/members.h) one data set each, all of one size. Immutable;
// used from one thread.
class DeviceData {
 public:
  DeviceData(const Dataset& data, const LabelSpace& labels, at::Device device)
      : DeviceData(std::vector<const Dataset*>{&data}, labels, device) {}
  DeviceData(const std::vector<const Dataset*>& data, const LabelSpace& labels, at::Device device);

  std::int64_t members() const { return members_; }
  // Examples of a member.

  std::int64_t train_examples() const { return train_examples_; }
  std::int64_t size() const { return size_; }
  std::int64_t length() const;  // T
  at::Device device() const;
  std::int64_t ignored_class() const { return ignored_class_; }
  bool padded() const { return lengths_.defined(); }
  // Tokens before the padding of each example, numbered as in At; empty where nothing is padded.
  const std::vector<std::int32_t>& lengths() const { return host_lengths_; }

  // Examples [begin, end) of each member.
  LabelledBatch Range(std::int64_t begin, std::int64_t end) const;
  // The examples at `indices` (any shape, 64-bit, on the device): the examples of member m count from m size(). Their first
  // `positions` alone, where so many are asked for (none of them may have more tokens).
  LabelledBatch At(const at::Tensor& indices) const { return At(indices, length()); }
  LabelledBatch At(const at::Tensor& indices, std::int64_t positions) const;
  at::Tensor ClassesAt(const at::Tensor& indices) const;
  // Indices of the training examples in their order in `epoch`, (members, train_examples()), on the CPU: a member's is a
  // permutation from the counter-based generator at (its seed, "train/order", epoch).
  at::Tensor Order(const std::vector<std::int64_t>& seeds, std::int64_t epoch) const;

 private:
  std::int64_t members_;
  std::int64_t train_examples_;
  std::int64_t size_;
  std::int64_t ignored_class_;
  at::Tensor tokens_;   // (M N, T), 32-bit
  at::Tensor lengths_;  // (M N), 64-bit; undefined where nothing is padded
  std::vector<std::int32_t> host_lengths_;
  at::Tensor classes_;  // (M N), 64-bit
};

}  // namespace pelab::trainer
