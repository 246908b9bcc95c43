// A data set on its device, and batches of it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "worker/trainer/model/decoder.h"
#include "worker/trainer/task/dataset.h"

namespace pelab::trainer {

// The value of PyTorch's ignore_index when no class is ignored. Targets of the ignored class count
// in neither loss nor accuracy.
inline constexpr std::int64_t kNoIgnoredClass = -100;

struct LabeledBatch {
  Batch inputs;
  at::Tensor classes;  // (B), or (B T) with a target for each position; 64-bit

  // How many classes an example has: 1 or T.
  std::int64_t per_example() const { return classes.size(0) / inputs.tokens.size(0); }
};

// A whole data set, stored on the device. With several members (parameters/members.h) there is one
// data set for each, all of the same size. Immutable; use it from one thread.
class DeviceData {
 public:
  DeviceData(const Dataset& data, const LabelSpace& labels, at::Device device)
      : DeviceData(std::vector<const Dataset*>{&data}, labels, device) {}
  DeviceData(const std::vector<const Dataset*>& data, const LabelSpace& labels, at::Device device);

  std::int64_t members() const { return members_; }
  // The next two functions return numbers of examples per member.
  std::int64_t train_examples() const { return train_examples_; }
  std::int64_t size() const { return size_; }
  std::int64_t length() const;  // T
  at::Device device() const;
  std::int64_t ignored_class() const { return ignored_class_; }
  bool padded() const { return lengths_.defined(); }
  bool by_position() const { return classes_.dim() == 2; }
  // The number of tokens before the padding of each example, numbered as in At; empty if nothing is
  // padded.
  const std::vector<std::int32_t>& lengths() const { return host_lengths_; }

  // Examples [begin, end) of each member.
  LabeledBatch Range(std::int64_t begin, std::int64_t end) const;
  // The examples at `indices` (any shape, 64-bit, on the device). The examples of member m are
  // numbered from m size(). With `positions`, only that many first positions of each example; no
  // example may have more tokens.
  LabeledBatch At(const at::Tensor& indices) const { return At(indices, length()); }
  LabeledBatch At(const at::Tensor& indices, std::int64_t positions) const;
  at::Tensor ClassesAt(const at::Tensor& indices) const;  // (B) or (B T), as LabeledBatch
  // The indices of the training examples in their order for `epoch`: (members, train_examples()),
  // on the CPU. The order of a member is a permutation from the counter-based generator at (its
  // seed, "train/order", epoch).
  at::Tensor Order(const std::vector<std::int64_t>& seeds, std::int64_t epoch) const;

 private:
  std::int64_t members_;
  std::int64_t train_examples_;
  std::int64_t size_;
  std::int64_t ignored_class_;
  at::Tensor tokens_;   // (M N, T), 32-bit
  at::Tensor lengths_;  // (M N), 64-bit; undefined if nothing is padded
  std::vector<std::int32_t> host_lengths_;
  at::Tensor classes_;  // (M N) or (M N, T), 64-bit
};

}  // namespace pelab::trainer
