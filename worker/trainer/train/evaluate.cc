#include "worker/trainer/train/evaluate.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "worker/trainer/limits.h"
#include "worker/trainer/protocol/stop.h"
#include "worker/trainer/train/classified_sums.h"
#include "worker/trainer/train/sections.h"

namespace pelab::trainer {
namespace {

void ForChunksByLength(const Decoder& decoder, const DeviceData& data, std::int64_t begin,
                       std::int64_t end, const std::function<void(const LabeledBatch&)>& visit) {
  const at::Tensor order = at::arange(begin, end, at::TensorOptions().dtype(at::kLong));
  OrderByLength(data, end - begin, order.unsqueeze(0));
  const at::Tensor on_device = order.to(data.device());
  for (std::int64_t left = end - begin; left > 0;) {
    ThrowIfStopped();
    const std::int64_t positions = PositionsOf(data, order.data_ptr<std::int64_t>()[left - 1]);
    const std::int64_t count =
        std::min(left, ChunkExamples(decoder.config(), positions, 1, data.device()));
    left -= count;
    visit(data.At(on_device.narrow(0, left, count), positions));
  }
}

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

std::int64_t ChunkExamples(const ModelConfig& config, std::int64_t length, std::int64_t variants,
                           at::Device device) {
  const std::int64_t bytes = 4 * variants * length * std::max(config.heads * length, config.d_ff);
  return std::clamp<std::int64_t>(
      (device.is_cpu() ? limits::kCpuChunkBytes : limits::kGpuChunkBytes) / bytes, 1,
      limits::kChunkExamples);
}

void ForChunks(const Decoder& decoder, const DeviceData& data, std::int64_t begin, std::int64_t end,
               const std::function<void(const LabeledBatch&)>& visit) {
  if (LeavesPaddingOut(decoder.config(), data)) {
    return ForChunksByLength(decoder, data, begin, end, visit);
  }
  const std::int64_t chunk =
      ChunkExamples(decoder.config(), data.length(), data.members(), data.device());
  for (std::int64_t at = begin; at < end; at += chunk) {
    ThrowIfStopped();
    visit(data.Range(at, std::min(end, at + chunk)));
  }
}

std::vector<Score> EvaluateMembers(const Decoder& decoder, const DeviceData& data,
                                   std::int64_t begin, std::int64_t end) {
  const at::NoGradGuard no_grad;
  ClassifiedSums sums(data.device(), data.members());
  ForChunks(decoder, data, begin, end, [&](const LabeledBatch& batch) {
    sums.Add(decoder.Logits(batch.inputs, nullptr), batch.classes, data.ignored_class(),
             sums.CountScored(batch.classes, data.ignored_class()));
  });
  std::vector<Score> scores;
  for (const ClassifiedFigures& figures : sums.Take()) {
    const auto scored = static_cast<double>(std::max<std::int64_t>(1, figures.scored));
    scores.push_back({figures.loss / scored, figures.correct, figures.scored});
  }
  return scores;
}

Score Evaluate(const Decoder& decoder, const DeviceData& data, std::int64_t begin,
               std::int64_t end) {
  return EvaluateMembers(decoder, data, begin, end).front();
}

}  // namespace pelab::trainer
