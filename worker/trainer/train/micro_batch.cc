#include "worker/trainer/train/micro_batch.h"

#include <algorithm>

#include "worker/trainer/kernels/attention/attention_cpu.h"
#include "worker/trainer/limits.h"

namespace pelab::trainer {
namespace {

std::int64_t Quotient(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }  // rounded up

}  // namespace

std::int64_t ActivationBytes(const ModelConfig& config, std::int64_t length) {
  // Per position: norms, queries, keys and values, heads, residuals, the inside of the feed-forward
  // part, and gradients of the backward pass. Per pair of positions: nothing if the attention is
  // fused, else the softmax and its dropout mask. A PE that changes the logits or the weights keeps
  // about three times as much.
  const std::int64_t position = 12 * config.d_model + 2 * config.d_ff;
  std::int64_t pairs = length > kMostCpuAttentionKeys ? 2 * config.heads * length : 0;
  if (config.keeps_logits) pairs = 6 * config.heads * length;
  return std::int64_t{sizeof(float)} * config.layers * length * (position + pairs);
}

std::int64_t ChooseMicroBatch(const ModelConfig& config, std::int64_t length, std::int64_t batch,
                              at::Device device) {
  if (!device.is_cpu()) return 0;
  const std::int64_t most =
      std::max<std::int64_t>(1, limits::kActivationBytes / ActivationBytes(config, length));
  return batch <= most ? 0 : Quotient(batch, Quotient(batch, most));
}

}  // namespace pelab::trainer
