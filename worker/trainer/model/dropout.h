// Dropout whose randomness is addressed by (seed, step, layer, site, element), so that no generator
// state has to be kept in a checkpoint and a resumed run repeats bit for bit.
// The same elements are dropped on every device, by fused kernels and by plain operations. Members (model/members.h) have each
// a seed of their own: what is dropped of one is what would be dropped of it alone.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "worker/trainer/config/config.h"
#include "worker/trainer/kernels/dropout_stream.h"

namespace pelab::trainer {

// One training step's dropout. Make one a step and pass it through the forward pass; null means
// evaluation.
class Dropout {
 public:
  // One seed a member. `device_keys`: where the keys of the step that the device is at lie on it, for each member two words a
  // place, layer * kDropoutSites + site; null: they are made here, and live as long as this and its parts.
  Dropout(const ModelConfig& config, const std::vector<std::int64_t>& seeds, std::int64_t step,
          const std::uint32_t* device_keys = nullptr);
  Dropout(const ModelConfig& config, std::int64_t seed, std::int64_t step)
      : Dropout(config, std::vector<std::int64_t>{seed}, step) {}

  std::int64_t members() const { return static_cast<std::int64_t>(seeds_.size()); }

  // The same step's dropout for a part of its batch: example 0 of what it is applied to is example `first_example` of the
  // batch, so that the parts together drop what the whole would.
  Dropout From(std::int64_t first_example) const;

  // … and for sequences of which only the first `positions` of `all` positions are computed: what is computed is dropped as if all
  // were.
  Dropout Trimmed(std::int64_t positions, std::int64_t all) const;

  // x times a fresh mask, or x itself where the configuration has no dropout at `site`.
  at::Tensor Apply(const at::Tensor& x, std::int64_t layer, DropoutSite site) const;
  // The mask as a stream for kernels, which need not be held in memory: none where there is no dropout at `site`.
  // `per_example`: elements of an example that are computed.
  // Its keys lie in memory that lives as long as this.
  DropoutStream Stream(std::int64_t layer, DropoutSite site, std::int64_t per_example) const;
  bool ActsAt(DropoutSite site) const {
    return config_.dropout > 0 && config_.dropout_at[static_cast<int>(site)];
  }

 private:
  // How many elements there are of `computed` and what goes with it at the positions that are skipped.
  std::int64_t WithSkipped(std::int64_t computed, DropoutSite site) const;

  const ModelConfig& config_;
  std::vector<std::int64_t> seeds_;
  std::int64_t step_;
  std::int64_t first_example_ = 0;
  std::int64_t positions_ = 0;  // computed ones of a sequence; 0: all
  std::int64_t skipped_ = 0;    // … and others
  std::shared_ptr<const std::vector<std::uint32_t>> own_keys_;
  // (members, places, 2), on the device that computes; null: of one member, made where they are asked for.
  const std::uint32_t* keys_;
};

}  // namespace pelab::trainer
