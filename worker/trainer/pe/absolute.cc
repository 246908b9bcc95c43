// Adds a vector per position to the embedding: interleaved sines and cosines of t/10000^(2i/D), or
// a row of a trained table.
#include <ATen/ATen.h>

#include <cstdint>

#include "worker/trainer/pe/pe.h"
#include "worker/trainer/pe/pe_tensors.h"

namespace pelab::trainer {
namespace {

class Sinusoidal : public PositionalEncoding {
 public:
  explicit Sinusoidal(const PeContext& context)
      : sinusoid_(context, SinusoidLayout::kInterleaved) {}

  at::Tensor InputTerm(std::int64_t length) override { return sinusoid_.Rows(length); }

 private:
  InputSinusoid sinusoid_;
};

class Learned : public PositionalEncoding {
 public:
  explicit Learned(const PeContext& context) : parameters_(*context.parameters) {
    table_ = context.parameters->Add("pe.table", {context.config.max_len, context.config.d_model},
                                     Init::Normal(context.job.Real("pe.init_std")));
  }
  at::Tensor InputTerm(std::int64_t length) override {
    return parameters_[table_].narrow(-2, 0, length);
  }

 private:
  const ParameterSet& parameters_;
  ParameterSet::Handle table_;  // (max_len, D)
};

}  // namespace

std::unique_ptr<PositionalEncoding> MakeAbsolute(const PeContext& context) {
  if (context.job.Choice("pe.form") == "learned") return std::make_unique<Learned>(context);
  return std::make_unique<Sinusoidal>(context);
}

}  // namespace pelab::trainer
