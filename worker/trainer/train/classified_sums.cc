#include "worker/trainer/train/classified_sums.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cstring>

#include "worker/trainer/operations/kernel_calls.h"
#include "worker/trainer/parameters/torch_tensors.h"
#include "worker/trainer/train/batches.h"

namespace pelab::trainer {

ClassifiedSums::ClassifiedSums(at::Device device, std::int64_t members)
    : members_(members),
      losses_(at::zeros({2, members}, at::TensorOptions().dtype(at::kDouble).device(device))),
      counts_(at::zeros({2, members}, at::TensorOptions().dtype(at::kLong).device(device))) {
  if (device.is_cpu() || !HasCudaKernels()) return;
  kernel_ = at::zeros({members * static_cast<std::int64_t>(sizeof(ClassificationSums))},
                      at::TensorOptions().dtype(at::kByte).device(device));
}

at::Tensor ClassifiedSums::CountScored(const at::Tensor& classes,
                                       std::int64_t ignored_class) const {
  if (!kernel_.defined()) return classes.ne(ignored_class).view({members_, -1}).sum(1);
  at::Tensor count = at::empty({members_}, classes.options());
  pelab::trainer::CountScored(classes.device(), classes.data_ptr<std::int64_t>(), members_,
                              classes.size(0) / members_, ignored_class,
                              count.data_ptr<std::int64_t>());
  return count;
}

void ClassifiedSums::Add(const at::Tensor& logits, const at::Tensor& classes,
                         std::int64_t ignored_class, const at::Tensor& scored) {
  AddWith(logits, classes, ignored_class, scored, false);
}

at::Tensor ClassifiedSums::AddAndDifferentiate(const at::Tensor& logits, const at::Tensor& classes,
                                               std::int64_t ignored_class,
                                               const at::Tensor& scored) {
  return AddWith(logits, classes, ignored_class, scored, true);
}

at::Tensor ClassifiedSums::AddWith(const at::Tensor& logits, const at::Tensor& classes,
                                   std::int64_t ignored_class, const at::Tensor& scored,
                                   bool differentiate) {
  const at::NoGradGuard no_grad;
  if (!kernel_.defined() || !KernelsTake(logits)) {
    return AddPlainly(logits, classes, ignored_class, scored, differentiate);
  }
  return InTypeOf(logits, [&](auto element) {
    return AddByKernel<decltype(element)>(logits, classes, ignored_class, scored, differentiate);
  });
}

at::Tensor ClassifiedSums::AddPlainly(const at::Tensor& logits, const at::Tensor& classes,
                                      std::int64_t ignored_class, const at::Tensor& scored,
                                      bool differentiate) {
  const at::Tensor wide = Widened(logits);
  const at::Tensor counts = classes.ne(ignored_class);
  const at::Tensor by_class = classes.clamp_min(0).unsqueeze(1);
  const at::Tensor logarithms = at::log_softmax(wide, 1);
  const auto sums = [&](const at::Tensor& x) { return x.view({members_, -1}).sum(1); };
  const at::Tensor loss = -sums(logarithms.gather(1, by_class).squeeze(1) * counts).to(at::kDouble);
  const at::Tensor in_batch = scored.clamp_min(1);
  const at::Tensor right = wide.argmax(1).eq(classes).logical_and(counts);
  losses_.add_(at::stack({loss, loss / in_batch}));
  counts_.add_(at::stack({sums(right), sums(counts)}));
  if (!differentiate) return {};
  const at::Tensor gradient = logarithms.exp();
  gradient.scatter_add_(1, by_class, at::full_like(by_class, -1, wide.options()));
  const at::Tensor share =
      counts.view({members_, -1}) / in_batch.unsqueeze(1).to(wide.scalar_type());
  gradient.mul_(share.view({-1, 1}));
  return gradient.to(logits.scalar_type());
}

template <class Element>
at::Tensor ClassifiedSums::AddByKernel(const at::Tensor& logits_in, const at::Tensor& classes,
                                       std::int64_t ignored_class, const at::Tensor& scored,
                                       bool differentiate) {
  const at::Tensor logits = logits_in.contiguous();
  const std::int64_t rows = logits.size(0);
  const at::Tensor loss = FreshFloats({rows}, logits);
  const at::Tensor correct = at::empty({rows}, kernel_.options());
  at::Tensor gradient;
  if (differentiate) gradient = FreshLike(logits);
  CrossEntropy<Element> problem;
  problem.members = members_;
  problem.rows = rows / members_;
  problem.classes = logits.size(1);
  problem.logits = DataOf<Element>(logits);
  problem.labels = classes.data_ptr<std::int64_t>();
  problem.ignored = ignored_class;
  problem.batch = scored.data_ptr<std::int64_t>();
  problem.loss = loss.data_ptr<float>();
  problem.correct = correct.data_ptr<std::uint8_t>();
  problem.gradient = DataOf<Element>(gradient);
  problem.sums = static_cast<ClassificationSums*>(kernel_.data_ptr());
  ScoreAll(logits.device(), problem);
  return gradient;
}

std::vector<ClassifiedFigures> ClassifiedSums::Take() {
  const at::Tensor losses = losses_.cpu(), counts = counts_.cpu();
  const at::Tensor kernel = kernel_.defined() ? kernel_.cpu() : at::Tensor();
  std::vector<ClassifiedFigures> all;
  for (std::int64_t m = 0; m < members_; ++m) {
    const auto loss = [&](int i) { return losses.data_ptr<double>()[i * members_ + m]; };
    const auto count = [&](int i) { return counts.data_ptr<std::int64_t>()[i * members_ + m]; };
    ClassifiedFigures& figures = all.emplace_back();
    figures = {loss(0), loss(1), count(0), count(1)};
    if (!kernel.defined()) continue;
    ClassificationSums sums;
    std::memcpy(&sums, kernel.data_ptr<std::uint8_t>() + m * sizeof sums, sizeof sums);
    figures.loss += sums.loss;
    figures.mean_loss += sums.mean_loss;
    figures.correct += sums.correct;
    figures.scored += sums.scored;
  }
  losses_.zero_();
  counts_.zero_();
  if (kernel_.defined()) kernel_.zero_();
  return all;
}

}  // namespace pelab::trainer
