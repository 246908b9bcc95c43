// xPos: a rotation whose pairs decay with distance (Sun et al. 2023, section 3.1). In addition to
// the rotation of rope.cc, pair t of the query at i is scaled by zeta_t^(i/s) and pair t of the key
// at j by zeta_t^(-j/s). The pair's part of the logit thus has the factor zeta_t^((i-j)/s), with
// zeta_t = (2t/d + 0.4)/1.4. Meant for causal masks: the factor of keys after the query would grow
// with distance.
#include <ATen/ATen.h>

#include <cmath>
#include <cstdint>

#include "worker/trainer/pe/pe.h"
#include "worker/trainer/pe/pe_tensors.h"

namespace pelab::trainer {
namespace {

class Xpos : public PositionalEncoding {
 public:
  explicit Xpos(const PeContext& context)
      : config_(context.config),
        parameters_(*context.parameters),
        base_(context.job.Real("pe.base")),
        scale_base_(context.job.Real("pe.scale_base")) {
    RequirePairs(context);
  }

  at::Tensor Rotations(Side side) override {
    if (!query_.defined()) {
      const at::Tensor rotations =
          ToRotations(RotaryRotations(config_.max_len, config_.head_dim(), base_), config_.max_len,
                      parameters_);
      query_ = rotations * Scales(1);
      key_ = rotations * Scales(-1);
    }
    return side == Side::kQuery ? query_ : key_;
  }

 private:
  // zeta_t^(sign (position - center) / s): (max_len, 1, d/2). Counting from the center does not
  // change the products of queries and keys and keeps the factors near 1.
  at::Tensor Scales(int sign) const {
    const auto zeta = XposBases(config_.head_dim());
    std::vector<double> scales;
    const std::int64_t center = config_.max_len / 2;
    for (std::int64_t t = 0; t < config_.max_len; ++t) {
      const auto power = static_cast<double>(t - center) / scale_base_;
      for (const double base : zeta) scales.push_back(std::pow(base, sign * power));
    }
    return ToTensor(scales, {config_.max_len, 1, config_.head_dim() / 2}, parameters_);
  }

  const ModelConfig& config_;
  const ParameterSet& parameters_;
  double base_;
  double scale_base_;
  at::Tensor query_, key_;  // (max_len, 1, d/2), complex
};

}  // namespace

std::unique_ptr<PositionalEncoding> MakeXpos(const PeContext& context) {
  return std::make_unique<Xpos>(context);
}

}  // namespace pelab::trainer
