// Rotates queries and keys: the adjacent pair t of a head is rotated by the angle position *
// base^(-2t/d). The logit then depends on the content and on i-j only (Su et al. 2021, section
// 3.2).
//
// `rope` with `input_sinusoid` (the authors' code) also adds a sinusoid to the embedding, with all
// sines before all cosines. `rope_abs` adds the interleaved sinusoid. `partial_rope` rotates some
// heads and gives the others no positions.
#include <ATen/ATen.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "worker/trainer/pe/pe.h"
#include "worker/trainer/pe/pe_tensors.h"
#include "worker/trainer/protocol/error.h"

namespace pelab::trainer {
namespace {

class Rope : public PositionalEncoding {
 public:
  Rope(const PeContext& context, std::optional<SinusoidLayout> input)
      : config_(context.config),
        parameters_(*context.parameters),
        base_(context.job.Real("pe.base")) {
    RequirePairs(context);
    if (input) sinusoid_.emplace(context, *input);
  }

  at::Tensor InputTerm(std::int64_t length) override {
    return sinusoid_ ? sinusoid_->Rows(length) : at::Tensor();
  }

  at::Tensor Rotations(Side /*side*/) override {
    if (!rotations_.defined()) rotations_ = MakeRotations();
    return rotations_;
  }

 protected:
  // (max_len, 1 or H, d/2), complex.
  virtual at::Tensor MakeRotations() const {
    return ToRotations(RotaryRotations(config_.max_len, config_.head_dim(), base_), config_.max_len,
                       parameters_);
  }
  const ModelConfig& config_;

 private:
  const ParameterSet& parameters_;
  double base_;
  std::optional<InputSinusoid> sinusoid_;
  at::Tensor rotations_;
};

class PartialRope : public Rope {
 public:
  explicit PartialRope(const PeContext& context) : Rope(context, std::nullopt) {
    if (context.job.Choice("pe.select") == "list") {
      heads_ = context.job.Ints("pe.head_list");
    } else {
      for (std::int64_t head = 0; head < context.job.Int("pe.heads"); ++head) {
        heads_.push_back(head);
      }
    }
    for (const std::int64_t head : heads_) RequireHead(head);
  }

 protected:
  // The other heads have the factor 1: they are not rotated.
  at::Tensor MakeRotations() const override {
    const at::Tensor all = Rope::MakeRotations();
    at::Tensor rotations = at::ones({all.size(0), config_.heads, all.size(2)}, all.options());
    for (const std::int64_t head : heads_) rotations.select(1, head).copy_(all.select(1, 0));
    return rotations;
  }

 private:
  void RequireHead(std::int64_t head) const {
    if (head >= 0 && head < config_.heads) return;
    throw TrainerError(ErrorKind::kBadSpec,
                       "partial_rope rotates head " + std::to_string(head) + "; allowed: 0 to " +
                           std::to_string(config_.heads - 1) + ", for model.heads is " +
                           std::to_string(config_.heads));
  }

  std::vector<std::int64_t> heads_;
};

}  // namespace

std::unique_ptr<PositionalEncoding> MakeRope(const PeContext& context) {
  std::optional<SinusoidLayout> input;
  if (context.job.Bool("pe.input_sinusoid")) input = SinusoidLayout::kHalfSplit;
  return std::make_unique<Rope>(context, input);
}

std::unique_ptr<PositionalEncoding> MakeRopeAbs(const PeContext& context) {
  return std::make_unique<Rope>(context, SinusoidLayout::kInterleaved);
}

std::unique_ptr<PositionalEncoding> MakePartialRope(const PeContext& context) {
  return std::make_unique<PartialRope>(context);
}

}  // namespace pelab::trainer
