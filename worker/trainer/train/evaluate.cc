#include "worker/trainer/train/evaluate.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "worker/trainer/protocol/stop.h"

namespace pelab::trainer {
namespace {

constexpr std::int64_t kCpuChunkBytes = std::int64_t{16} << 20;
constexpr std::int64_t kGpuChunkBytes = std::int64_t{512} << 20;
constexpr std::int64_t kMostChunkExamples = 1024;

}  // namespace

at::Tensor CountCorrect(const at::Tensor& logits, const at::Tensor& classes,
                        std::int64_t ignored_class) {
  const at::Tensor right = logits.detach().argmax(1).eq(classes);
  if (ignored_class == kNoIgnoredClass) {
    return at::stack({right.sum(), at::full({}, classes.size(0), classes.options())});
  }
  const at::Tensor scored = classes.ne(ignored_class);
  return at::stack({right.logical_and(scored).sum(), scored.sum()});
}

at::Tensor LossSum(const at::Tensor& logits, const at::Tensor& classes,
                   std::int64_t ignored_class) {
  return at::cross_entropy_loss(logits, classes, {}, at::Reduction::Sum, ignored_class);
}

at::Tensor MeanLoss(const at::Tensor& logits, const at::Tensor& classes,
                    std::int64_t ignored_class) {
  if (ignored_class == kNoIgnoredClass) {
    return at::cross_entropy_loss(logits, classes, {}, at::Reduction::Mean, ignored_class);
  }
  return LossSum(logits, classes, ignored_class) / classes.ne(ignored_class).sum().clamp_min(1);
}

std::int64_t ChunkExamples(const ModelConfig& config, std::int64_t length, std::int64_t variants,
                           at::Device device) {
  const std::int64_t bytes = 4 * variants * length * std::max(config.heads * length, config.d_ff);
  return std::clamp<std::int64_t>((device.is_cpu() ? kCpuChunkBytes : kGpuChunkBytes) / bytes, 1,
                                  kMostChunkExamples);
}

Score Evaluate(const Decoder& decoder, const DeviceData& data, std::int64_t begin,
               std::int64_t end) {
  const at::NoGradGuard no_grad;
  at::Tensor loss;    // scalar, double
  at::Tensor counts;  // (correct, scored)
  const std::int64_t chunk = ChunkExamples(decoder.config(), data.length(), 1, data.device());
  for (std::int64_t at = begin; at < end; at += chunk) {
    ThrowIfStopped();
    const LabelledBatch batch = data.Range(at, std::min(end, at + chunk));
    const at::Tensor logits = decoder.Logits(batch.inputs, nullptr);
    const at::Tensor sum = LossSum(logits, batch.classes, data.ignored_class()).to(at::kDouble);
    const at::Tensor count = CountCorrect(logits, batch.classes, data.ignored_class());
    loss = loss.defined() ? loss + sum : sum;
    counts = counts.defined() ? counts + count : count;
  }
  Score score;
  if (!counts.defined()) return score;
  const at::Tensor host = counts.cpu();
  score.correct = host.data_ptr<std::int64_t>()[0];
  score.total = host.data_ptr<std::int64_t>()[1];
  score.loss = loss.item().toDouble() / static_cast<double>(std::max<std::int64_t>(1, score.total));
  return score;
}

}  // namespace pelab::trainer
