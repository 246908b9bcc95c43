// Loss and score of classified examples, added up where they are computed and read back once. On CUDA one kernel makes
// them and the gradient (kernels/cross_entropy.h); elsewhere LibTorch's operations do, in the order of the examples.
//
// Of M members (model/members.h) each has sums of its own; examples come member by member, as many of each.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace pelab::trainer {

struct ClassifiedFigures {
  double loss = 0;       // summed over the scored examples, in nats
  double mean_loss = 0;  // summed over batches: each the mean over its scored examples
  std::int64_t correct = 0;
  std::int64_t scored = 0;
};

class ClassifiedSums {
 public:
  explicit ClassifiedSums(at::Device device, std::int64_t members = 1);

  // How many of each member's `classes` (n) are scored: (M), 64-bit, on the device.
  at::Tensor CountScored(const at::Tensor& classes, std::int64_t ignored_class) const;

  // Adds the examples with `logits` (n, C) and `classes` (n), a batch or a part of one of which `scored` (CountScored) are
  // scored. A prediction is the largest logit, the lowest class of equal ones. Does not synchronise.
  void Add(const at::Tensor& logits, const at::Tensor& classes, std::int64_t ignored_class,
           const at::Tensor& scored);
  // … and gives the gradient of the batch's mean loss by the logits, (n, C) in their type.
  at::Tensor AddAndDifferentiate(const at::Tensor& logits, const at::Tensor& classes,
                                 std::int64_t ignored_class, const at::Tensor& scored);

  // What was added since the last call, of each member. Synchronises the device.
  std::vector<ClassifiedFigures> Take();

 private:
  at::Tensor AddPlainly(const at::Tensor& logits, const at::Tensor& classes,
                        std::int64_t ignored_class, const at::Tensor& scored, bool differentiate);
  template <class Element>
  at::Tensor AddByKernel(const at::Tensor& logits, const at::Tensor& classes,
                         std::int64_t ignored_class, const at::Tensor& scored, bool differentiate);
  at::Tensor AddWith(const at::Tensor& logits, const at::Tensor& classes,
                     std::int64_t ignored_class, const at::Tensor& scored, bool differentiate);

  std::int64_t members_;
  at::Tensor losses_;  // (2, M), double: loss, mean_loss
  at::Tensor counts_;  // (2, M), 64-bit: correct, scored
  at::Tensor kernel_;  // (M) ClassificationSums, as bytes on the device; undefined on a CPU
};

}  // namespace pelab::trainer
