// A learned bias per head and distance is added to the logits.
//
// `t5`: one table of (buckets, H), shared by the layers, indexed by T5's logarithmic bucket of the distance; no
// multiplier, 1/sqrt(d) kept. `table` (the authors' code): one table of (2 max_len - 1, H) a layer, row j - i + max_len - 1.
#include <ATen/ATen.h>

#include <cstdint>
#include <string>

#include "worker/trainer/pe/pe.h"
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

  at::Tensor LogitBias(std::int64_t layer, std::int64_t length) override {
    const at::Tensor& table = parameters_[tables_[shared_ ? 0 : layer]];
    // An embedding look-up, whose gradient is deterministic on CUDA too.
    return at::embedding(table, Rows(length))  // (T*T, H)
        .t()
        .reshape({config_.heads, length, length});
  }

 private:
  // The table's row for every (query, key), flat.
  const at::Tensor& Rows(std::int64_t length) {
    if (rows_length_ == length) return rows_;
    const at::Tensor rows = at::empty({length * length}, at::TensorOptions().dtype(at::kLong));
    auto* out = rows.data_ptr<std::int64_t>();
    for (std::int64_t i = 0; i < length; ++i) {
      for (std::int64_t j = 0; j < length; ++j) {
        out[i * length + j] = shared_ ? T5Bucket(j - i, config_.causal, buckets_, max_distance_)
                                      : j - i + config_.max_len - 1;
      }
    }
    rows_ = rows.to(parameters_.device());
    rows_length_ = length;
    return rows_;
  }

  const ModelConfig& config_;
  const ParameterSet& parameters_;
  bool shared_;
  std::int64_t buckets_ = 0;
  std::int64_t max_distance_ = 0;
  std::vector<ParameterSet::Handle> tables_;
  at::Tensor rows_;
  std::int64_t rows_length_ = -1;
};

}  // namespace

std::unique_ptr<PositionalEncoding> MakeRelative(const PeContext& context) {
  return std::make_unique<Relative>(context);
}

}  // namespace pelab::trainer
