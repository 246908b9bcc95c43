#include "worker/trainer/train/batches.h"

#include <ATen/ATen.h>

#include <numeric>
#include <utility>
#include <vector>

#include "core/base/random.h"

namespace pelab::trainer {
namespace {

// A copy on `device`; the vector may go.
at::Tensor Upload(const std::vector<std::int32_t>& values, at::Device device) {
  const at::Tensor host =
      at::empty({static_cast<std::int64_t>(values.size())}, at::TensorOptions().dtype(at::kInt));
  std::copy(values.begin(), values.end(), host.data_ptr<std::int32_t>());
  return host.to(device);
}

}  // namespace

DeviceData::DeviceData(const Dataset& data, const LabelSpace& labels, at::Device device)
    : train_examples_(data.train_examples),
      size_(data.size()),
      ignored_class_(labels.score_zero ? kNoIgnoredClass : 0),
      tokens_(Upload(data.tokens, device).view({data.size(), data.length})),
      classes_(Upload(data.labels, device).to(at::kLong) - labels.offset) {
  if (data.HasPadding()) lengths_ = Upload(data.lengths, device).to(at::kLong);
}

std::int64_t DeviceData::length() const { return tokens_.size(1); }

at::Device DeviceData::device() const { return tokens_.device(); }

LabelledBatch DeviceData::Range(std::int64_t begin, std::int64_t end) const {
  const std::int64_t count = end - begin;
  return {{tokens_.narrow(0, begin, count),
           lengths_.defined() ? lengths_.narrow(0, begin, count) : at::Tensor()},
          classes_.narrow(0, begin, count)};
}

LabelledBatch DeviceData::At(const at::Tensor& indices) const {
  return {{tokens_.index_select(0, indices),
           lengths_.defined() ? lengths_.index_select(0, indices) : at::Tensor()},
          classes_.index_select(0, indices)};
}

at::Tensor DeviceData::ClassesAt(const at::Tensor& indices) const {
  return classes_.index_select(0, indices);
}

at::Tensor DeviceData::Order(std::int64_t seed, std::int64_t epoch) const {
  const at::Tensor order = at::empty({train_examples_}, at::TensorOptions().dtype(at::kLong));
  std::int64_t* const at = order.data_ptr<std::int64_t>();
  std::iota(at, at + train_examples_, std::int64_t{0});
  CounterRandom random(static_cast<std::uint64_t>(seed), "train/order",
                       static_cast<std::uint64_t>(epoch));
  for (std::int64_t i = train_examples_; i > 1; --i) {
    std::swap(at[i - 1], at[random.Below(static_cast<std::uint32_t>(i))]);
  }
  return order.to(classes_.device());
}

}  // namespace pelab::trainer
