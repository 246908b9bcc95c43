// Adds a learned bias per head and distance to the logits.
//
// `t5`: one table of (buckets, H) that all layers share, indexed by T5's logarithmic bucket of the
// distance. The bias has no multiplier, and the logits keep their scale 1/sqrt(d).
// `table` (the authors' code): one table of (2 max_len - 1, H) per layer; the row is j - i +
// max_len - 1.
#include <ATen/ATen.h>

#include <cstdint>
#include <string>

#include "worker/trainer/parameters/members.h"
#include "worker/trainer/pe/pe.h"
#include "worker/trainer/pe/pe_tensors.h"
#include "worker/trainer/pe/tables.h"

namespace pelab::trainer {
namespace {

class Relative : public PositionalEncoding {
 public:
  explicit Relative(const PeContext& context)
      : config_(context.config),
        parameters_(*context.parameters),
        shared_(context.job.Choice("pe.form") == "t5") {
    const Init init = Init::Normal(context.job.Real("pe.init_std"));
    if (shared_) {
      buckets_ = context.job.Int("pe.buckets");
      max_distance_ = context.job.Int("pe.max_distance");
      tables_.push_back(context.parameters->Add("pe.bias", {buckets_, config_.heads}, init));
      return;
    }
    for (std::int64_t layer = 0; layer < config_.layers; ++layer) {
      tables_.push_back(context.parameters->Add("layers." + std::to_string(layer) + ".pe.bias",
                                                {2 * config_.max_len - 1, config_.heads}, init));
    }
  }

  at::Tensor DistanceBias(std::int64_t layer, std::int64_t length) override {
    const at::Tensor& table = parameters_[tables_[shared_ ? 0 : layer]];
    return LookUp(table, Rows(length)).transpose(-2, -1).contiguous();
  }

 private:
  // The row of the table for each distance: (2T-1).
  at::Tensor Rows(std::int64_t length) {
    if (!rows_.defined()) {
      rows_ = RowsByDistance(config_.max_len, parameters_, [&](std::int64_t distance) {
        return shared_ ? T5Bucket(distance, config_.causal, buckets_, max_distance_)
                       : distance + config_.max_len - 1;
      });
    }
    return WithinLength(rows_, length);
  }

  const ModelConfig& config_;
  const ParameterSet& parameters_;
  bool shared_;
  std::int64_t buckets_ = 0;
  std::int64_t max_distance_ = 0;
  std::vector<ParameterSet::Handle> tables_;
  at::Tensor rows_;  // (2 max_len - 1)
};

}  // namespace

std::unique_ptr<PositionalEncoding> MakeRelative(const PeContext& context) {
  return std::make_unique<Relative>(context);
}

}  // namespace pelab::trainer
