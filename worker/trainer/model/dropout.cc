#include "worker/trainer/model/dropout.h"

#include <ATen/ATen.h>

#include "core/base/random.h"
#include "worker/trainer/kernels/dropout/dropout_mask.h"
#include "worker/trainer/operations/kernel_calls.h"

namespace pelab::trainer {

namespace {

std::int64_t Places(const ModelConfig& config) { return config.layers * kDropoutSites; }

std::uint64_t KeyOf(std::int64_t seed, std::int64_t step, std::int64_t place) {
  const CounterRandom random(static_cast<std::uint64_t>(seed), "dropout",
                             static_cast<std::uint64_t>(step));
  return random.At(static_cast<std::uint64_t>(place));
}

// Two words for each member and place, the lower word first.
std::vector<std::uint32_t> KeysOf(const ModelConfig& config, const std::vector<std::int64_t>& seeds,
                                  std::int64_t step) {
  std::vector<std::uint32_t> keys;
  for (const std::int64_t seed : seeds) {
    for (std::int64_t place = 0; place < Places(config); ++place) {
      const std::uint64_t key = KeyOf(seed, step, place);
      keys.push_back(static_cast<std::uint32_t>(key));
      keys.push_back(static_cast<std::uint32_t>(key >> 32));
    }
  }
  return keys;
}

}  // namespace

Dropout::Dropout(const ModelConfig& config, const std::vector<std::int64_t>& seeds,
                 std::int64_t step, const std::uint32_t* device_keys)
    : config_(config), seeds_(seeds), step_(step), keys_(device_keys) {
  if (keys_ != nullptr || members() == 1) return;
  own_keys_ = std::make_shared<const std::vector<std::uint32_t>>(KeysOf(config, seeds, step));
  keys_ = own_keys_->data();
}

Dropout Dropout::From(std::int64_t first_example) const {
  Dropout part = *this;
  part.first_example_ = first_example;
  return part;
}

Dropout Dropout::Trimmed(std::int64_t positions, std::int64_t all) const {
  Dropout part = *this;
  part.positions_ = positions;
  part.skipped_ = all - positions;
  return part;
}

std::int64_t Dropout::WithSkipped(std::int64_t computed, DropoutSite site) const {
  if (skipped_ == 0) return computed;
  const std::int64_t all = positions_ + skipped_;
  const std::int64_t by_position = computed / positions_ * all;
  return site == DropoutSite::kAttention ? by_position / positions_ * all : by_position;
}

DropoutStream Dropout::Stream(std::int64_t layer, DropoutSite site,
                              std::int64_t per_example) const {
  if (!ActsAt(site)) return {};
  const std::int64_t place = layer * kDropoutSites + static_cast<int>(site);
  const std::uint64_t key = keys_ == nullptr ? KeyOf(seeds_.front(), step_, place) : 0;
  DropoutStream stream =
      MakeDropoutStream(key, config_.dropout, first_example_ * WithSkipped(per_example, site));
  if (skipped_ > 0) SkipPositions(positions_, skipped_, &stream);
  if (keys_ == nullptr) return stream;
  stream.keys = keys_ + 2 * place;
  stream.member_keys = 2 * Places(config_);
  return stream;
}

at::Tensor Dropout::Apply(const at::Tensor& x, std::int64_t layer, DropoutSite site) const {
  if (!ActsAt(site)) return x;
  const DropoutStream stream = Stream(layer, site, x.numel() / x.size(0));
  std::vector<std::int64_t> sizes = x.sizes().vec();
  if (site == DropoutSite::kAttention) {  // (B, H, T', T)
    sizes[2] += skipped_;
    sizes[3] += skipped_;
  } else {  // (B, T', n)
    sizes[1] += skipped_;
  }
  at::Tensor mask = DropoutMaskOn(x.device(), stream, members(), sizes);
  for (std::int64_t dimension = 1; dimension < x.dim(); ++dimension) {
    mask = mask.narrow(dimension, 0, x.size(dimension));
  }
  // Multiplies in at least 32 bits, because 1/(1-p) is not exact in 16.
  return (x * mask).to(x.scalar_type());
}

}  // namespace pelab::trainer
