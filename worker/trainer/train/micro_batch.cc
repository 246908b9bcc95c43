#include "worker/trainer/train/micro_batch.h"

#include <algorithm>

namespace pelab::trainer {
namespace {

constexpr std::int64_t kActivationBytes = std::int64_t{768} << 20;

std::int64_t Quotient(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }  // rounded up

}  // namespace

std::int64_t ActivationBytes(const ModelConfig& config, std::int64_t length) {
  // Of a position: norms, queries, keys and values before and after their rotation, heads, dropout
  // masks and residuals; of a pair of positions: the softmax and its dropout mask.
  const std::int64_t position = 14 * config.d_model + 2 * config.d_ff;
  const std::int64_t pairs = 2 * config.heads * length;
  return std::int64_t{sizeof(float)} * config.layers * length * (position + pairs);
}

std::int64_t ChooseMicroBatch(const ModelConfig& config, std::int64_t length, std::int64_t batch,
                              at::Device device) {
  if (!device.is_cpu()) return 0;
  const std::int64_t most =
      std::max<std::int64_t>(1, kActivationBytes / ActivationBytes(config, length));
  return batch <= most ? 0 : Quotient(batch, Quotient(batch, most));
}

}  // namespace pelab::trainer
