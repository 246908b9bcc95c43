// The kernels of cross_entropy.h. A warp processes a row. It reads the row's logits (a few hundred)
// three times, and they stay in the first-level cache in between. Then one block per member sums
// over the rows.
#pragma once

#include "worker/trainer/kernels/loss/cross_entropy.h"
#include "worker/trainer/kernels/row_vectors.cuh"

namespace pelab::trainer {

inline constexpr int kEntropyWarps = 4;  // warps, and therefore rows, per block
inline constexpr int kEntropyThreads = kEntropyWarps * kWarpLanes;
inline constexpr int kTallyThreads = 256;

// The largest logit that a lane, or later the warp, has seen.
struct Largest {
  float logit;
  std::int64_t at;  // class index; -1: none yet
};

__device__ __forceinline__ bool Beats(const Largest& a, const Largest& b) {
  if (a.at < 0 || b.at < 0) return b.at < 0 && a.at >= 0;
  const bool a_nan = a.logit != a.logit, b_nan = b.logit != b.logit;
  if (a_nan || b_nan) return a_nan && (!b_nan || a.at < b.at);
  return a.logit > b.logit || (a.logit == b.logit && a.at < b.at);
}

__device__ __forceinline__ Largest WarpLargest(Largest x) {
#pragma unroll
  for (int lanes = kWarpLanes / 2; lanes > 0; lanes /= 2) {
    const Largest other = {__shfl_xor_sync(kWholeWarp, x.logit, lanes),
                           __shfl_xor_sync(kWholeWarp, x.at, lanes)};
    if (Beats(other, x)) x = other;
  }
  return x;
}

template <class Element>
__global__ void __launch_bounds__(kEntropyThreads) CrossEntropyKernel(CrossEntropy<Element> all) {
  const CrossEntropy<Element> p = MemberOf(all, blockIdx.z);
  const int lane = static_cast<int>(threadIdx.x) % kWarpLanes;
  const std::int64_t row = std::int64_t{blockIdx.x} * kEntropyWarps + threadIdx.x / kWarpLanes;
  if (row >= p.rows) return;
  const Element* const logits = p.logits + row * p.classes;
  const std::int64_t label = p.labels[row];
  const bool scored = label != p.ignored;

  Largest largest = {0, -1};
  for (std::int64_t j = lane; j < p.classes; j += kWarpLanes) {
    const Largest here = {ToFloat(logits[j]), j};
    if (Beats(here, largest)) largest = here;
  }
  largest = WarpLargest(largest);
  float sum = 0;
  for (std::int64_t j = lane; j < p.classes; j += kWarpLanes) {
    sum += expf(ToFloat(logits[j]) - largest.logit);
  }
  sum = WarpSum(sum);
  if (lane == 0) {
    p.loss[row] = scored ? logf(sum) + (largest.logit - ToFloat(logits[label])) : 0;
    p.correct[row] = scored && largest.at == label ? 1 : 0;
  }
  if (p.gradient == nullptr) return;
  __syncwarp();  // the gradient may overwrite the logit that lane 0 has just read
  Element* const gradient = p.gradient + row * p.classes;
  const float share = scored ? 1 / static_cast<float>(max(*p.batch, std::int64_t{1})) : 0;
  const float scale = share / sum;
  for (std::int64_t j = lane; j < p.classes; j += kWarpLanes) {
    const float softmax = expf(ToFloat(logits[j]) - largest.logit) * scale;
    // Not a product with 0, which would keep NaN.
    SetElement(gradient + j, scored ? softmax - (j == label ? share : 0) : 0);
  }
}

// The sum of the threads' x, in the order of a tree, for thread 0. Every thread of a block of
// kTallyThreads must call it.
template <class Number>
__device__ __forceinline__ Number BlockSum(Number x, Number* shared) {
  shared[threadIdx.x] = x;
  __syncthreads();
#pragma unroll
  for (unsigned half = kTallyThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
    __syncthreads();
  }
  return shared[0];
}

template <int kThreads>
__global__ void __launch_bounds__(kThreads)
    CountScoredKernel(const std::int64_t* labels, std::int64_t rows, std::int64_t ignored,
                      std::int64_t* batch) {
  labels += blockIdx.z * rows;
  PELAB_SHARED(std::int64_t, counts, kTallyThreads);
  std::int64_t count = 0;
  for (std::int64_t row = threadIdx.x; row < rows; row += kThreads) {
    count += labels[row] != ignored ? 1 : 0;
  }
  count = BlockSum(count, counts);
  if (threadIdx.x == 0) batch[blockIdx.z] = count;
}

// One block of kTallyThreads per member: adds the rows' losses and scores to the sums.
template <class Element>
__global__ void __launch_bounds__(kTallyThreads) TallyKernel(CrossEntropy<Element> all) {
  const CrossEntropy<Element> p = MemberOf(all, blockIdx.z);
  PELAB_SHARED(double, losses, kTallyThreads);
  PELAB_SHARED(std::int64_t, rights, kTallyThreads);
  PELAB_SHARED(std::int64_t, counts, kTallyThreads);
  double loss = 0;
  std::int64_t correct = 0, scored = 0;
  for (std::int64_t row = threadIdx.x; row < p.rows; row += kTallyThreads) {
    loss += p.loss[row];
    correct += p.correct[row];
    scored += p.labels[row] != p.ignored ? 1 : 0;
  }
  loss = BlockSum(loss, losses);
  correct = BlockSum(correct, rights);
  scored = BlockSum(scored, counts);
  if (threadIdx.x != 0) return;
  p.sums->loss += loss;
  p.sums->mean_loss += loss / static_cast<double>(max(*p.batch, std::int64_t{1}));
  p.sums->correct += correct;
  p.sums->scored += scored;
}

}  // namespace pelab::trainer
