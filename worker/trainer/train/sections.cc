#include "worker/trainer/train/sections.h"

#include <algorithm>

#include "worker/trainer/limits.h"

namespace pelab::trainer {
namespace {

// Positions are multiples of this, because kernels use whole vectors.
constexpr std::int64_t kPositions = 8;

// Limit of rows * positions in SkipPositions.
constexpr std::int64_t kMostRows = std::int64_t{1} << 32;

std::int64_t ExamplesOf(const Sections& batch) { return batch.back().begin + batch.back().count; }

// Makes the sections `all` long enough for `more` too. Both have the same number of sections and
// examples. If `all` is empty, it becomes `more`.
void Cover(const Sections& more, Sections* all) {
  if (all->empty()) *all = more;
  for (std::size_t i = 0; i < more.size(); ++i) {
    (*all)[i].positions = std::max((*all)[i].positions, more[i].positions);
  }
}

}  // namespace

bool OrdersByLength(const ModelConfig& config, const DeviceData& data) {
  return data.padded() && !config.reads_padding();
}

bool LeavesPaddingOut(const ModelConfig& config, const DeviceData& data) {
  return OrdersByLength(config, data) && data.members() == 1 && !config.pe_reads_length;
}

void OrderByLength(const DeviceData& data, std::int64_t batch_size, const at::Tensor& order) {
  const std::vector<std::int32_t>& lengths = data.lengths();
  const std::int64_t examples = order.size(1);
  for (std::int64_t member = 0; member < order.size(0); ++member) {
    std::int64_t* const first = order.data_ptr<std::int64_t>() + member * examples;
    for (std::int64_t at = 0; at < examples; at += batch_size) {
      std::stable_sort(first + at, first + std::min(examples, at + batch_size),
                       [&](std::int64_t a, std::int64_t b) { return lengths[a] < lengths[b]; });
    }
  }
}

std::int64_t PositionsOf(const DeviceData& data, std::int64_t index) {
  const std::int64_t whole = (data.lengths()[index] + kPositions - 1) / kPositions * kPositions;
  return std::min(whole, data.length());
}

Sections SectionsOf(const DeviceData& data, const std::int64_t* indices, std::int64_t count) {
  const std::int64_t sections =
      std::clamp<std::int64_t>(count / limits::kLeastSectionExamples, 1, limits::kSections);
  Sections all;
  for (std::int64_t i = 0; i < sections; ++i) {
    const std::int64_t begin = i * count / sections, end = (i + 1) * count / sections;
    all.push_back({begin, end - begin, PositionsOf(data, indices[end - 1])});
  }
  return all;
}

at::Tensor EpochBatches::Batch(std::int64_t batch) const {
  return indices.narrow(1, batch * ExamplesOf(sections.front()), ExamplesOf(sections[batch]));
}

Sections InParts(const Sections& sections, std::int64_t most_examples, std::int64_t length) {
  Sections parts;
  for (const Section& section : sections) {
    std::int64_t most =
        std::max<std::int64_t>(1, kMostRows / section.positions / section.positions);
    if (most_examples > 0) {
      most = std::min(most, most_examples * length / section.positions);
    }
    for (std::int64_t at = 0; at < section.count; at += most) {
      parts.push_back({section.begin + at, std::min(most, section.count - at), section.positions});
    }
  }
  return parts;
}

Batching::Batching(const ModelConfig& config, const DeviceData* data,
                   const std::vector<std::int64_t>& seeds, std::int64_t batch_size,
                   bool all_positions, std::int64_t alike_epochs)
    : data_(*data),
      seeds_(seeds),
      batch_size_(batch_size),
      by_length_(OrdersByLength(config, *data)),
      sections_(!all_positions && LeavesPaddingOut(config, *data)) {
  if (!sections_) return;
  for (std::int64_t epoch = 0; epoch < alike_epochs; ++epoch) {
    const std::vector<Sections> own = SectionsIn(OrderOf(epoch));
    // All full batches share the sections of the first batch. The last batch has its own if it is
    // smaller.
    alike_.resize(own.size());
    for (std::size_t i = 0; i < own.size(); ++i) {
      Cover(own[i], &alike_[ExamplesOf(own[i]) == batch_size_ ? 0 : i]);
    }
  }
  for (std::size_t i = 0; i < alike_.size(); ++i) {
    if (alike_[i].empty()) alike_[i] = alike_[0];
  }
}

std::int64_t Batching::batches() const {
  return (data_.train_examples() + batch_size_ - 1) / batch_size_;
}

EpochBatches Batching::Of(std::int64_t epoch) const {
  const at::Tensor order = OrderOf(epoch);
  return {order.to(data_.device()), alike_.empty() ? SectionsIn(order) : alike_};
}

at::Tensor Batching::OrderOf(std::int64_t epoch) const {
  at::Tensor order = data_.Order(seeds_, epoch);
  if (by_length_) OrderByLength(data_, batch_size_, order);
  return order;
}

std::vector<Sections> Batching::SectionsIn(const at::Tensor& order) const {
  const std::int64_t examples = order.size(1);
  std::vector<Sections> all;
  for (std::int64_t at = 0; at < examples; at += batch_size_) {
    const std::int64_t count = std::min(batch_size_, examples - at);
    all.push_back(sections_ ? SectionsOf(data_, order.data_ptr<std::int64_t>() + at, count)
                            : Sections{{0, count, data_.length()}});
  }
  return all;
}

}  // namespace pelab::trainer
