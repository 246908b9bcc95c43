// Adds a learned vector per signed distance to the keys and, with `values`, another one to the
// values (Shaw et al. 2018, equations 3 and 4): logit q_i (k_j + a^K_r) / sqrt(d), output sum of
// w_ij (v_j + a^V_r), row r = clip(j - i, -m, m) + m with m = max_distance. Each layer has one
// table of (2m + 1, d) for keys and, with `values`, one for values. Its heads share them.
#include <ATen/ATen.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "worker/trainer/parameters/members.h"
#include "worker/trainer/pe/pe.h"
#include "worker/trainer/pe/pe_tensors.h"

namespace pelab::trainer {
namespace {

class Shaw : public PositionalEncoding {
 public:
  explicit Shaw(const PeContext& context)
      : parameters_(*context.parameters),
        max_len_(context.config.max_len),
        max_distance_(context.job.Int("pe.max_distance")) {
    const bool values = context.job.Bool("pe.values");
    for (std::int64_t layer = 0; layer < context.config.layers; ++layer) {
      keys_.push_back(AddTable(context, layer, "pe.key"));
      if (values) values_.push_back(AddTable(context, layer, "pe.value"));
    }
  }

  at::Tensor DistanceTerm(Side side, std::int64_t layer, std::int64_t length) override {
    const auto& tables = side == Side::kKey ? keys_ : values_;
    return tables.empty() ? at::Tensor() : LookUp(parameters_[tables[layer]], Rows(length));
  }

 private:
  ParameterSet::Handle AddTable(const PeContext& context, std::int64_t layer,
                                const std::string& name) const {
    return context.parameters->Add("layers." + std::to_string(layer) + "." + name,
                                   {2 * max_distance_ + 1, context.config.head_dim()},
                                   Init::Normal(context.job.Real("pe.init_std")));
  }

  // The row of the table for each distance: (2T-1).
  at::Tensor Rows(std::int64_t length) {
    if (!rows_.defined()) {
      rows_ = RowsByDistance(max_len_, parameters_, [&](std::int64_t distance) {
        return std::clamp(distance, -max_distance_, max_distance_) + max_distance_;
      });
    }
    return WithinLength(rows_, length);
  }

  const ParameterSet& parameters_;
  std::int64_t max_len_;
  std::int64_t max_distance_;
  std::vector<ParameterSet::Handle> keys_, values_;  // by layer
  at::Tensor rows_;                                  // (2 max_len - 1)
};

}  // namespace

std::unique_ptr<PositionalEncoding> MakeShaw(const PeContext& context) {
  return std::make_unique<Shaw>(context);
}

}  // namespace pelab::trainer
