// Queries and keys are rotated: the adjacent pair t of a head turns by position * base^(-2t/d), so that the logit depends
// on content and on i-j alone (Su et al. 2021, section 3.2). With `input_sinusoid` (the authors' code) a sinusoid is added
// to the embedding as well, all sines before all cosines.
#include <ATen/ATen.h>

#include <cmath>
#include <cstdint>

#include "worker/trainer/pe/pe.h"
#include "worker/trainer/pe/pe_tensors.h"
#include "worker/trainer/pe/tables.h"
#include "worker/trainer/protocol/error.h"

namespace pelab::trainer {
namespace {

constexpr double kSinusoidBase = 10000;

class Rope : public PositionalEncoding {
 public:
  explicit Rope(const PeContext& context)
      : config_(context.config),
        parameters_(*context.parameters),
        base_(context.job.Real("pe.base")),
        input_sinusoid_(context.job.Bool("pe.input_sinusoid")) {
    if (config_.head_dim() % 2 != 0) {
      throw TrainerError(ErrorKind::kBadSpec,
                         "rope turns pairs, but model.d_model / model.heads is " +
                             std::to_string(config_.head_dim()) + "; allowed: an even number");
    }
  }

  at::Tensor InputTerm(std::int64_t length) override {
    if (!input_sinusoid_) return {};
    if (!sinusoid_.defined()) {
      sinusoid_ = ToTensor(
          Sinusoid(config_.max_len, config_.d_model, kSinusoidBase, SinusoidLayout::kHalfSplit),
          {config_.max_len, config_.d_model}, parameters_);
    }
    return sinusoid_.narrow(0, 0, length);
  }

  at::Tensor Rotate(Side /*side*/, std::int64_t /*layer*/, const at::Tensor& x,
                    std::int64_t first) override {
    if (!turns_.defined()) turns_ = Turns();
    const at::Tensor turns = turns_.narrow(0, first, x.size(1));  // (T', 1, d/2), complex
    const at::Tensor pairs =
        at::view_as_complex(x.reshape({x.size(0), x.size(1), x.size(2), x.size(3) / 2, 2}));
    return at::view_as_real(pairs * turns).flatten(3);
  }

 private:
  // e^(i t θ) as complex numbers: (max_len, 1, d/2).
  at::Tensor Turns() const {
    const auto frequencies = Frequencies(config_.head_dim(), base_);
    std::vector<double> values;
    for (std::int64_t t = 0; t < config_.max_len; ++t) {
      for (const double frequency : frequencies) {
        values.push_back(std::cos(static_cast<double>(t) * frequency));
        values.push_back(std::sin(static_cast<double>(t) * frequency));
      }
    }
    return at::view_as_complex(
        ToTensor(values, {config_.max_len, 1, config_.head_dim() / 2, 2}, parameters_));
  }

  const ModelConfig& config_;
  const ParameterSet& parameters_;
  double base_;
  bool input_sinusoid_;
  at::Tensor sinusoid_;  // (max_len, D)
  at::Tensor turns_;     // (max_len, 1, d/2), complex
};

}  // namespace

std::unique_ptr<PositionalEncoding> MakeRope(const PeContext& context) {
  return std::make_unique<Rope>(context);
}

}  // namespace pelab::trainer
