#include "worker/trainer/train/batches.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "core/base/random.h"
#include "core/safetensors/task_file.h"

namespace pelab::trainer {
namespace {

// Copies one part of every data set to `device`, one data set after another.
template <typename Part>
at::Tensor Upload(const std::vector<const Dataset*>& data, const Part& part, at::Device device) {
  const std::int64_t each = static_cast<std::int64_t>(part(*data.front()).size());
  const at::Tensor host = at::empty({static_cast<std::int64_t>(data.size()) * each},
                                    at::TensorOptions().dtype(at::kInt));
  std::int32_t* to = host.data_ptr<std::int32_t>();
  for (const Dataset* of : data) to = std::copy(part(*of).begin(), part(*of).end(), to);
  return host.to(device);
}

// Examples [begin, end) of each member's part of x (M N, …).
at::Tensor RangeOf(const at::Tensor& x, std::int64_t members, std::int64_t begin,
                   std::int64_t end) {
  if (members == 1) return x.narrow(0, begin, end - begin);
  return x.unflatten(0, {members, x.size(0) / members}).narrow(1, begin, end - begin).flatten(0, 1);
}

}  // namespace

namespace {

// Positions without a target have the ignored class. If no class is ignored otherwise, that is one
// that no label has.
std::int64_t IgnoredClass(const Dataset& data, const LabelSpace& labels) {
  constexpr std::int64_t kNoClass = -1;
  if (!labels.score_zero) return 0;
  return data.by_position ? kNoClass : kNoIgnoredClass;
}

}  // namespace

DeviceData::DeviceData(const std::vector<const Dataset*>& data, const LabelSpace& labels,
                       at::Device device)
    : members_(static_cast<std::int64_t>(data.size())),
      train_examples_(data.front()->train_examples),
      size_(data.front()->size()),
      ignored_class_(IgnoredClass(*data.front(), labels)),
      tokens_(Upload(
                  data, [](const Dataset& d) -> const auto& { return d.tokens; }, device)
                  .view({members_ * size_, data.front()->length})),
      classes_(Upload(
                   data, [](const Dataset& d) -> const auto& { return d.labels; }, device)
                   .to(at::kLong) -
               labels.offset) {
  if (data.front()->by_position) {
    classes_.masked_fill_(classes_.eq(kNoTarget - labels.offset), ignored_class_);
    classes_ = classes_.view({members_ * size_, data.front()->length});
  }
  const auto padded = [](const Dataset* of) { return of->HasPadding(); };
  if (std::any_of(data.begin(), data.end(), padded)) {
    lengths_ = Upload(
                   data, [](const Dataset& d) -> const auto& { return d.lengths; }, device)
                   .to(at::kLong);
    for (const Dataset* of : data) {
      host_lengths_.insert(host_lengths_.end(), of->lengths.begin(), of->lengths.end());
    }
  }
}

std::int64_t DeviceData::length() const { return tokens_.size(1); }

at::Device DeviceData::device() const { return tokens_.device(); }

LabeledBatch DeviceData::Range(std::int64_t begin, std::int64_t end) const {
  const auto range = [&](const at::Tensor& x) {
    return x.defined() ? RangeOf(x, members_, begin, end) : x;
  };
  return {{range(tokens_), range(lengths_)}, range(classes_).flatten()};
}

LabeledBatch DeviceData::At(const at::Tensor& indices, std::int64_t positions) const {
  const at::Tensor flat = indices.flatten();
  return {{tokens_.narrow(1, 0, positions).index_select(0, flat),
           lengths_.defined() ? lengths_.index_select(0, flat) : at::Tensor()},
          (by_position() ? classes_.narrow(1, 0, positions) : classes_)
              .index_select(0, flat)
              .flatten()};
}

at::Tensor DeviceData::ClassesAt(const at::Tensor& indices) const {
  return classes_.index_select(0, indices.flatten()).flatten();
}

at::Tensor DeviceData::Order(const std::vector<std::int64_t>& seeds, std::int64_t epoch) const {
  at::Tensor order = at::empty({members_, train_examples_}, at::TensorOptions().dtype(at::kLong));
  std::int64_t* at = order.data_ptr<std::int64_t>();
  for (std::int64_t m = 0; m < members_; ++m, at += train_examples_) {
    std::iota(at, at + train_examples_, m * size_);
    CounterRandom random(static_cast<std::uint64_t>(seeds[m]), "train/order",
                         static_cast<std::uint64_t>(epoch));
    for (std::int64_t i = train_examples_; i > 1; --i) {
      std::swap(at[i - 1], at[random.Below(static_cast<std::uint32_t>(i))]);
    }
  }
  return order;
}

}  // namespace pelab::trainer
