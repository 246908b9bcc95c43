// Loss, score and gradient of a batch of classifications on CUDA, in one pass over the logits.
//
//   loss_r = log(sum over j of exp(z_rj)) - z_rc         z: the logits of row r, c its class
//   dz_rj  = (exp(z_rj) / sum over k of exp(z_rk) - [j = c]) / N
//                                of the mean loss; N: the scored rows of the whole batch
//
// A row is right if the largest logit is that of its class. Of equal logits the first counts, and
// NaN counts as the largest, as in at::argmax. Rows of the ignored label are not scored: loss 0,
// not right, gradient 0.
//
// Letters: M members (members.h), B rows of each, C classes. Every pointer is to device memory.
// Element is float or Bf16. Sums are computed in 32 bits, those over rows in 64. Calls only queue
// work on `stream` and may come from any thread. There are no atomics and every sum has a fixed
// order, so results depend only on the shape.
#pragma once

#include <cstdint>

#include "worker/trainer/kernels/bf16.h"
#include "worker/trainer/kernels/members.h"
#include "worker/trainer/kernels/portable.h"

namespace pelab::trainer {

// The sums of an epoch. They are on the device and are read back at its end. The default is zero.
struct ClassificationSums {
  double loss = 0;       // of scored rows
  double mean_loss = 0;  // sum over batches of: sum of the rows' losses / N
  std::int64_t correct = 0;
  std::int64_t scored = 0;
};

template <class Element>
struct CrossEntropy {
  std::int64_t members = 1;              // M
  std::int64_t rows = 0;                 // B
  std::int64_t classes = 0;              // C
  const Element* logits = nullptr;       // z (M, B, C)
  const std::int64_t* labels = nullptr;  // c (M, B): 0 … C-1, or `ignored`
  std::int64_t ignored = -1;             // rows of this label are not scored; it may be negative
  // N (M), from CountScoredOnCuda for the whole batch; these rows may be a part of it. 0 acts as 1.
  const std::int64_t* batch = nullptr;
  float* loss = nullptr;               // (M, B)
  std::uint8_t* correct = nullptr;     // (M, B): 1 if right
  Element* gradient = nullptr;         // dz (M, B, C), may be the logits' memory; null: not needed
  ClassificationSums* sums = nullptr;  // (M): the results are added to it; null: not needed
};

// The part of one member.
template <class Element>
PELAB_HOST_DEVICE CrossEntropy<Element> MemberOf(CrossEntropy<Element> p, std::int64_t member) {
  Advance(p.logits, member * p.rows * p.classes);
  Advance(p.labels, member * p.rows);
  Advance(p.batch, member);
  Advance(p.loss, member * p.rows);
  Advance(p.correct, member * p.rows);
  Advance(p.gradient, member * p.rows * p.classes);
  Advance(p.sums, member);
  return p;
}

// batch (M) = the number of scored labels among each member's labels (M, B).
KernelError CountScoredOnCuda(const std::int64_t* labels, std::int64_t members, std::int64_t rows,
                              std::int64_t ignored, std::int64_t* batch, CudaStream stream);

// `batch` may be null if neither gradient nor sums are needed.
template <class Element>
KernelError CrossEntropyOnCuda(const CrossEntropy<Element>& problem, CudaStream stream);

}  // namespace pelab::trainer
