// A vector per position is added to the embedding: interleaved sines and cosines of t/10000^(2i/D), or a trained table.
#include <ATen/ATen.h>

#include <cstdint>

#include "worker/trainer/pe/pe.h"
#include "worker/trainer/pe/pe_tensors.h"
#include "worker/trainer/pe/tables.h"

namespace pelab::trainer {
namespace {

constexpr double kBase = 10000;

class Sinusoidal : public PositionalEncoding {
 public:
  explicit Sinusoidal(const PeContext& context)
      : config_(context.config), parameters_(*context.parameters) {}

  at::Tensor InputTerm(std::int64_t length) override {
    if (!table_.defined()) {
      table_ =
          ToTensor(Sinusoid(config_.max_len, config_.d_model, kBase, SinusoidLayout::kInterleaved),
                   {config_.max_len, config_.d_model}, parameters_);
    }
    return table_.narrow(0, 0, length);
  }

 private:
  const ModelConfig& config_;
  const ParameterSet& parameters_;
  at::Tensor table_;  // (max_len, D)
};

class Learned : public PositionalEncoding {
 public:
  explicit Learned(const PeContext& context) : parameters_(*context.parameters) {
    table_ = context.parameters->Add("pe.table", {context.config.max_len, context.config.d_model},
                                     Init::Normal(context.job.Real("pe.init_std")));
  }
  at::Tensor InputTerm(std::int64_t length) override {
    return parameters_[table_].narrow(0, 0, length);
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
