// Dropout whose randomness is addressed by (seed, step, layer, site, element). Checkpoints
// therefore need no generator state, and a resumed run repeats bit for bit. Fused kernels and plain
// operations drop the same elements on every device. Each member (parameters/members.h) has its own
// seed: the same elements are dropped as if the member were trained alone.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "worker/trainer/config/config.h"
#include "worker/trainer/kernels/dropout_stream.h"

namespace pelab::trainer {

// The dropout of one training step. Make one for each step and pass it through the forward pass;
// null means evaluation.
class Dropout {
 public:
  // `config` must outlive this object. `seeds`: one per member. `device_keys`: the address, in the
  // device's memory, of the keys of the device's current step, two words for each member and place
  // (layer * kDropoutSites + site). If it is null, the keys are made here and live as long as this
  // object and its parts.
  Dropout(const ModelConfig& config, const std::vector<std::int64_t>& seeds, std::int64_t step,
          const std::uint32_t* device_keys = nullptr);
  Dropout(const ModelConfig& config, std::int64_t seed, std::int64_t step)
      : Dropout(config, std::vector<std::int64_t>{seed}, step) {}

  std::int64_t members() const { return static_cast<std::int64_t>(seeds_.size()); }

  // The dropout of the same step for a part of the batch: example 0 of the part is example
  // `first_example` of the batch. Together the parts drop the same elements as the whole batch
  // would.
  Dropout From(std::int64_t first_example) const;

  // The dropout if only the first `positions` of the `all` positions of each sequence are computed.
  // The computed elements are dropped as if all positions were computed.
  Dropout Trimmed(std::int64_t positions, std::int64_t all) const;

  // Returns x times a new mask, or x itself if the configuration has no dropout at `site`.
  at::Tensor Apply(const at::Tensor& x, std::int64_t layer, DropoutSite site) const;
  // The mask as a stream for kernels, so that the mask need not be stored. If there is no dropout
  // at `site`, the stream drops nothing. `per_example`: the number of computed elements per
  // example. The keys of the stream live in memory that lives as long as this object.
  DropoutStream Stream(std::int64_t layer, DropoutSite site, std::int64_t per_example) const;
  bool ActsAt(DropoutSite site) const {
    return config_.dropout > 0 && config_.dropout_at[static_cast<int>(site)];
  }

 private:
  // The number of elements if the skipped positions are counted in addition to the `computed`
  // elements.
  std::int64_t WithSkipped(std::int64_t computed, DropoutSite site) const;

  const ModelConfig& config_;
  std::vector<std::int64_t> seeds_;
  std::int64_t step_;
  std::int64_t first_example_ = 0;
  std::int64_t positions_ = 0;  // computed positions per sequence; 0: all
  std::int64_t skipped_ = 0;    // positions per sequence that are not computed
  std::shared_ptr<const std::vector<std::uint32_t>> own_keys_;
  // (members, places, 2), on the device that computes. Null: there is one member, and Stream makes
  // its keys.
  const std::uint32_t* keys_;
};

}  // namespace pelab::trainer
