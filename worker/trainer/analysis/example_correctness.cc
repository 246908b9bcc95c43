#include "worker/trainer/analysis/example_correctness.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <vector>

#include "worker/trainer/protocol/stop.h"
#include "worker/trainer/train/evaluate.h"

namespace pelab::trainer {
namespace {

std::string Hexadecimal(const std::vector<at::Tensor>& parts) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string digits;
  if (parts.empty()) return digits;
  const at::Tensor right = at::cat(parts).to(at::kByte).to(at::kCPU).contiguous();
  const auto* bits = right.data_ptr<std::uint8_t>();
  for (std::int64_t first = 0; first < right.numel(); first += 4) {
    unsigned digit = 0;
    for (std::int64_t i = first; i < first + 4; ++i) {
      digit = digit << 1 | (i < right.numel() ? bits[i] : 0u);
    }
    digits += kDigits[digit];
  }
  return digits;
}

}  // namespace

ExampleCorrectness JudgeExamples(const Decoder& decoder, const DeviceData& data,
                                 std::int64_t max_examples) {
  const at::NoGradGuard no_grad;
  const ExampleRange range = ChooseExamples(data, /*all_data=*/false, max_examples);
  const std::int64_t chunk = ChunkExamples(decoder.config(), data.length(), 1, data.device());
  IntactTally intact;
  std::vector<at::Tensor> right;
  for (std::int64_t at = range.begin; at < range.end; at += chunk) {
    ThrowIfStopped();
    const LabeledBatch batch = data.Range(at, std::min(range.end, at + chunk));
    const Predictions predictions =
        Predict(decoder.Logits(batch.inputs, nullptr), batch.classes, data.ignored_class());
    intact.Add(predictions, batch.classes, data.ignored_class());
    right.push_back(predictions.right);
  }
  return {intact.Finish(), Hexadecimal(right)};
}

std::int64_t ExampleCorrectnessMaxExamples(const experiment::Analysis& analysis) {
  return std::get<std::int64_t>(analysis.parameters.at("example_correctness.max_examples"));
}

}  // namespace pelab::trainer
