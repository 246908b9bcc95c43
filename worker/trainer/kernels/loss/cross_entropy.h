// Loss, score and gradient of a batch of classifications on CUDA, in one pass over the logits.
//
//   loss_r = log(sum over j of exp(z_rj)) - z_rc         z: the logits of row r, c its class
//   dz_rj  = (exp(z_rj) / sum over k of exp(z_rk) - [j = c]) / N      of the mean loss; N: the scored rows of the whole batch
//
// A row is right where the largest logit is its class's; of equal ones the first counts, and one that is not a number counts
// as largest, both as at::argmax has it. Rows of the ignored class are not scored: loss 0, not right, gradient 0.
//
// Letters: M members (members.h), B rows of each, C classes. Every pointer is to the device's memory; Element is float
// or Bf16, sums are made in 32 bits, those over rows in 64. Calls only queue work on `stream` and may come from any
// thread; no atomics, every sum in a fixed order, so results depend on the shape alone.
#pragma once

#include <cstdint>

#include "worker/trainer/kernels/bf16.h"
#include "worker/trainer/kernels/members.h"
#include "worker/trainer/kernels/portable.h"

namespace pelab::trainer {

// What an epoch adds up; on the device, read back when it ends. As it stands: nothing yet.
struct ClassificationSums {
  double loss = 0;       // of scored rows
  double mean_loss = 0;  // of batches: each the sum of its rows' losses over its N
  std::int64_t correct = 0;
  std::int64_t scored = 0;
};

template <class Element>
struct CrossEntropy {
  std::int64_t members = 1;              // M
  std::int64_t rows = 0;                 // B
  std::int64_t classes = 0;              // C
  const Element* logits = nullptr;       // z (M, B, C)
  const std::int64_t* labels = nullptr;  // c (M, B): the ignored class, or 0 … C-1
  std::int64_t ignored = -1;             // the class that is not scored; negative: none
  const std::int64_t* batch =
      nullptr;  // N (M): CountScoredOnCuda of the whole batch, of which this may be a part; 0 acts as 1
  float* loss = nullptr;               // (M, B)
  std::uint8_t* correct = nullptr;     // (M, B): 1 where right
  Element* gradient = nullptr;         // dz (M, B, C), may be the logits' memory; null: not wanted
  ClassificationSums* sums = nullptr;  // (M): added to; null: not wanted
};

// One member's part.
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

// batch (M) = how many of each member's labels (M, B) are scored.
KernelError CountScoredOnCuda(const std::int64_t* labels, std::int64_t members, std::int64_t rows,
                              std::int64_t ignored, std::int64_t* batch, CudaStream stream);

// `batch` may be null where neither gradient nor sums are wanted.
template <class Element>
KernelError CrossEntropyOnCuda(const CrossEntropy<Element>& problem, CudaStream stream);

}  // namespace pelab::trainer
