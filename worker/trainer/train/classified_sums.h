// Loss and score of classified examples. They are summed where they are computed and read back
// once. On CUDA one kernel computes them and the gradient (kernels/loss/cross_entropy.h). Elsewhere
// LibTorch operations compute them, in the order of the examples.
//
// Each of M members (parameters/members.h) has its own sums. Examples come member by member, the
// same number for each.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace pelab::trainer {

struct ClassifiedFigures {
  double loss = 0;       // summed over the scored examples, in nats
  double mean_loss = 0;  // sum over batches of the mean over the batch's scored examples
  std::int64_t correct = 0;
  std::int64_t scored = 0;
};

class ClassifiedSums {
 public:
  explicit ClassifiedSums(at::Device device, std::int64_t members = 1);

  // The number of scored examples among each member's `classes`: (M), 64-bit, on the device.
  // `classes` (n) is for all members together.
  at::Tensor CountScored(const at::Tensor& classes, std::int64_t ignored_class) const;

  // Adds the examples with `logits` (n, C) and `classes` (n). They are a batch or a part of a
  // batch. `scored` is CountScored of the whole batch. The prediction is the class with the largest
  // logit; of equal logits the lowest class counts. Does not synchronize.
  void Add(const at::Tensor& logits, const at::Tensor& classes, std::int64_t ignored_class,
           const at::Tensor& scored);
  // The same; also returns the gradient of the batch's mean loss with respect to the logits: (n, C)
  // in their type.
  at::Tensor AddAndDifferentiate(const at::Tensor& logits, const at::Tensor& classes,
                                 std::int64_t ignored_class, const at::Tensor& scored);

  // Returns the sums of each member since the last call. Synchronizes the device.
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
