#include "worker/trainer/pe/pe_tensors.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstdlib>

#include "worker/trainer/protocol/error.h"

namespace pelab::trainer {
namespace {

constexpr double kSinusoidBase = 10000;

}  // namespace

at::Tensor ToTensor(const std::vector<double>& values, const std::vector<std::int64_t>& shape,
                    const ParameterSet& parameters) {
  const at::Tensor tensor = at::empty(shape, at::TensorOptions().dtype(at::kDouble));
  std::copy(values.begin(), values.end(), tensor.data_ptr<double>());
  return tensor.to(parameters.flat().scalar_type()).to(parameters.device());
}

std::vector<double> NegativeDistances(std::int64_t length) {
  std::vector<double> distances;
  for (std::int64_t distance = 1 - length; distance < length; ++distance) {
    distances.push_back(static_cast<double>(-std::abs(distance)));
  }
  return distances;
}

at::Tensor RowsByDistance(std::int64_t length, const ParameterSet& parameters,
                          const std::function<std::int64_t(std::int64_t distance)>& row) {
  const at::Tensor rows = at::empty({2 * length - 1}, at::TensorOptions().dtype(at::kLong));
  for (std::int64_t distance = 1 - length; distance < length; ++distance) {
    rows.data_ptr<std::int64_t>()[distance + length - 1] = row(distance);
  }
  return rows.to(parameters.device());
}

at::Tensor WithinLength(const at::Tensor& by_distance, std::int64_t length) {
  const std::int64_t distances = 2 * length - 1;
  return by_distance.narrow(-1, (by_distance.size(-1) - distances) / 2, distances);
}

InputSinusoid::InputSinusoid(const PeContext& context, SinusoidLayout layout)
    : config_(context.config), parameters_(*context.parameters), layout_(layout) {}

at::Tensor InputSinusoid::Rows(std::int64_t length) {
  if (!table_.defined()) {
    table_ = ToTensor(Sinusoid(config_.max_len, config_.d_model, kSinusoidBase, layout_),
                      {config_.max_len, config_.d_model}, parameters_);
  }
  return table_.narrow(0, 0, length);
}

at::Tensor ToRotations(const std::vector<double>& values, std::int64_t length,
                       const ParameterSet& parameters) {
  const auto pairs = static_cast<std::int64_t>(values.size()) / (2 * length);
  return at::view_as_complex(ToTensor(values, {length, 1, pairs, 2}, parameters));
}

void RequirePairs(const PeContext& context) {
  if (context.config.head_dim() % 2 == 0) return;
  throw TrainerError(ErrorKind::kBadSpec,
                     context.job.pe + " rotates pairs, but model.d_model / model.heads is " +
                         std::to_string(context.config.head_dim()) + "; allowed: an even number");
}

}  // namespace pelab::trainer
