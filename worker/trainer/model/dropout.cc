#include "worker/trainer/model/dropout.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "core/base/random.h"
#include "worker/trainer/model/dropout_mask.h"
#include "worker/trainer/model/torch_compat.h"

namespace pelab::trainer {
namespace {

constexpr std::int64_t kGrain = 1 << 15;

CounterRandom StepRandom(std::int64_t seed, std::int64_t step) {
  return CounterRandom(static_cast<std::uint64_t>(seed), "dropout",
                       static_cast<std::uint64_t>(step));
}

}  // namespace

Dropout::Dropout(const ModelConfig& config, std::int64_t seed, std::int64_t step, at::Device device)
    : config_(config), seed_(seed), step_(step) {
  if (config.dropout > 0 && !device.is_cpu()) {
    SeedDevice(device.str(), StepRandom(seed, step).At(0) >> 1);
  }
}

Dropout Dropout::From(std::int64_t first_example) const {
  Dropout part = *this;
  part.first_example_ = first_example;
  return part;
}

at::Tensor Dropout::Mask(at::IntArrayRef shape, std::int64_t layer, DropoutSite site) const {
  const auto address = static_cast<std::uint64_t>(layer * kDropoutSites + static_cast<int>(site));
  const std::uint64_t key = StepRandom(seed_, step_).At(address);
  const at::Tensor mask = at::empty(shape, at::TensorOptions().dtype(at::kFloat));
  float* const out = mask.data_ptr<float>();
  const std::int64_t first = first_example_ * (mask.numel() / mask.size(0));
  at::parallel_for(0, mask.numel(), kGrain, [&](std::int64_t begin, std::int64_t end) {
    FillDropoutMask(key, config_.dropout, first + begin, end - begin, out + begin);
  });
  return mask;
}

at::Tensor Dropout::Apply(const at::Tensor& x, std::int64_t layer, DropoutSite site) const {
  if (!ActsAt(site)) return x;
  if (!x.device().is_cpu()) return at::dropout(x, config_.dropout, /*train=*/true);
  return x * Mask(x.sizes(), layer, site).to(x.scalar_type());
}

}  // namespace pelab::trainer
