// Adds a fixed penalty -m_h |i-j| to the logits. The slopes m_h are geometric (Press et al. 2022)
// or exponential (the authors' code).
#include <ATen/ATen.h>

#include <cstdint>

#include "worker/trainer/pe/pe.h"
#include "worker/trainer/pe/pe_tensors.h"
#include "worker/trainer/pe/tables.h"

namespace pelab::trainer {
namespace {

class Alibi : public PositionalEncoding {
 public:
  explicit Alibi(const PeContext& context)
      : parameters_(*context.parameters),
        max_len_(context.config.max_len),
        slopes_(context.job.Choice("pe.slopes") == "geometric"
                    ? GeometricSlopes(context.config.heads)
                    : ExponentialSlopes(context.config.heads)) {}

  at::Tensor DistanceBias(std::int64_t /*layer*/, std::int64_t length) override {
    if (!bias_.defined()) {
      const auto heads = static_cast<std::int64_t>(slopes_.size());
      bias_ = ToTensor(slopes_, {heads, 1}, parameters_) *
              ToTensor(NegativeDistances(max_len_), {1, 2 * max_len_ - 1}, parameters_);
    }
    return WithinLength(bias_, length);
  }

 private:
  const ParameterSet& parameters_;
  std::int64_t max_len_;
  std::vector<double> slopes_;
  at::Tensor bias_;  // (H, 2 max_len - 1)
};

}  // namespace

std::unique_ptr<PositionalEncoding> MakeAlibi(const PeContext& context) {
  return std::make_unique<Alibi>(context);
}

}  // namespace pelab::trainer
