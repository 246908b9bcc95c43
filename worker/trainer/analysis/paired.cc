#include "worker/trainer/analysis/paired.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "worker/trainer/analysis/sums.h"
#include "worker/trainer/parameters/torch_tensors.h"
#include "worker/trainer/protocol/error.h"

namespace pelab::trainer {
namespace {

// The result is exact, because counts stay far below 2^53.
std::int64_t CountFrom(double sum) { return static_cast<std::int64_t>(std::llround(sum)); }

}  // namespace

ExampleRange ChooseExamples(const DeviceData& data, bool all_data, std::int64_t max_examples) {
  const std::int64_t begin = all_data ? 0 : data.train_examples();
  const std::int64_t most = data.size() - begin;
  return {begin, begin + (max_examples == 0 ? most : std::min(most, max_examples))};
}

Predictions Predict(const at::Tensor& logits, const at::Tensor& classes,
                    std::int64_t ignored_class) {
  std::vector<std::int64_t> sizes = logits.sizes().vec();
  const std::int64_t width = sizes.back();
  sizes.pop_back();
  const at::Tensor wide = classes.expand(sizes);
  at::Tensor right = logits.argmax(-1).eq(wide);
  if (ignored_class != kNoIgnoredClass) right = right.logical_and(wide.ne(ignored_class));
  const at::Tensor nll =
      at::cross_entropy_loss(Widened(logits).reshape({-1, width}), wide.reshape({-1}), {},
                             at::Reduction::None, ignored_class);
  return {right, nll.view(sizes).to(at::kDouble)};
}

void IntactTally::Add(const Predictions& intact, const at::Tensor& classes,
                      std::int64_t ignored_class) {
  const at::Tensor scored = classes.ne(ignored_class).sum().to(at::kDouble);
  AddTo(at::stack({scored, intact.right.sum().to(at::kDouble), intact.nll.sum()}), &sums_);
}

IntactScore IntactTally::Finish() const {
  IntactScore score;
  if (!sums_.defined()) return score;
  const at::Tensor host = sums_.cpu();
  const double* const sums = host.data_ptr<double>();
  score.total = CountFrom(sums[0]);
  score.correct = CountFrom(sums[1]);
  score.nll = sums[2] / static_cast<double>(std::max<std::int64_t>(1, score.total));
  return score;
}

void PairedTally::Add(const Predictions& intact, const Predictions& ablated) {
  const auto count = [](const at::Tensor& which) { return which.sum(1).to(at::kDouble); };
  const at::Tensor change = ablated.nll - intact.nll;
  AddTo(
      at::stack({count(ablated.right), count(intact.right.logical_and(ablated.right.logical_not())),
                 count(ablated.right.logical_and(intact.right.logical_not())), ablated.nll.sum(1),
                 change.sum(1), change.square().sum(1)}),
      &sums_);
}

std::vector<PairedScore> PairedTally::Finish(std::int64_t total) const {
  std::vector<PairedScore> scores;
  if (!sums_.defined()) return scores;
  const at::Tensor host = sums_.cpu().contiguous();
  const std::int64_t variants = host.size(1);
  const double n = static_cast<double>(std::max<std::int64_t>(1, total));
  for (std::int64_t v = 0; v < variants; ++v) {
    const auto sum = [&](int row) { return host.data_ptr<double>()[row * variants + v]; };
    PairedScore score{CountFrom(sum(0)), CountFrom(sum(1)), CountFrom(sum(2)), sum(3) / n, 0};
    const double mean = sum(4) / n;
    score.nll_standard_error = std::sqrt(std::max(0.0, sum(5) / n - mean * mean) / n);
    if (!std::isfinite(score.nll) || !std::isfinite(score.nll_standard_error)) {
      throw TrainerError(ErrorKind::kNonFiniteLoss,
                         "the loss of an ablated model is not a finite number");
    }
    scores.push_back(score);
  }
  return scores;
}

}  // namespace pelab::trainer
