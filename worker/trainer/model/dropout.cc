#include "worker/trainer/model/dropout.h"

#include <ATen/ATen.h>

#include "core/base/random.h"
#include "worker/trainer/kernels/dropout_mask.h"
#include "worker/trainer/model/kernel_calls.h"

namespace pelab::trainer {

Dropout::Dropout(const ModelConfig& config, std::int64_t seed, std::int64_t step,
                 const std::uint32_t* device_keys)
    : config_(config), seed_(seed), step_(step), device_keys_(device_keys) {}

Dropout Dropout::From(std::int64_t first_example) const {
  Dropout part = *this;
  part.first_example_ = first_example;
  return part;
}

DropoutStream Dropout::Stream(std::int64_t layer, DropoutSite site,
                              std::int64_t per_example) const {
  if (!ActsAt(site)) return {};
  const CounterRandom random(static_cast<std::uint64_t>(seed_), "dropout",
                             static_cast<std::uint64_t>(step_));
  const std::int64_t place = layer * kDropoutSites + static_cast<int>(site);
  DropoutStream stream = MakeDropoutStream(random.At(static_cast<std::uint64_t>(place)),
                                           config_.dropout, first_example_ * per_example);
  if (device_keys_ != nullptr) stream.device_keys = device_keys_ + 2 * place;
  return stream;
}

at::Tensor Dropout::Apply(const at::Tensor& x, std::int64_t layer, DropoutSite site) const {
  if (!ActsAt(site)) return x;
  const DropoutStream stream = Stream(layer, site, x.numel() / x.size(0));
  // In 32 bits at least: 1/(1-p) has no exact form in 16.
  return (x * DropoutMaskOn(x.device(), stream, x.sizes())).to(x.scalar_type());
}

}  // namespace pelab::trainer
