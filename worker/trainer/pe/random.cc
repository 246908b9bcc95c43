// Adds a random normal vector per position to the embedding. The table is kept with the weights,
// whether it is trained or not.
#include <ATen/ATen.h>

#include <cstdint>

#include "worker/trainer/pe/pe.h"

namespace pelab::trainer {
namespace {

class Random : public PositionalEncoding {
 public:
  explicit Random(const PeContext& context) : parameters_(*context.parameters) {
    const ParameterSet::Shape shape = {context.config.max_len, context.config.d_model};
    const Init init = Init::Normal(context.job.Real("pe.init_std"));
    table_ = context.job.Bool("pe.trainable")
                 ? context.parameters->Add("pe.table", shape, init)
                 : context.parameters->AddFrozen("pe.table", shape, init);
  }
  at::Tensor InputTerm(std::int64_t length) override {
    return parameters_[table_].narrow(-2, 0, length);
  }

 private:
  const ParameterSet& parameters_;
  ParameterSet::Handle table_;  // (max_len, D)
};

}  // namespace

std::unique_ptr<PositionalEncoding> MakeRandom(const PeContext& context) {
  return std::make_unique<Random>(context);
}

}  // namespace pelab::trainer
