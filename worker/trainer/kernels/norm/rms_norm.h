// The root-mean-square norm (Zhang and Sennrich 2019, equation 4) of rows, in one pass over memory:
//
//   n = x / sqrt(mean(x^2) + eps) * gamma
//
// Backward, with dn the gradient of n and h the normed row before gamma:
//
//   g = dn gamma,   dx = (g - h mean(g h)) / sqrt(mean(x^2) + eps),   dgamma = sum of dn h
//
// Letters: M members (members.h), R rows (batch times positions), W width. A row of x may be part
// of a wider one, so that the latents of one product need no copies. Sums over rows are taken in
// blocks of kNormBlockRows rows.
#pragma once

#include <cstdint>

#include "worker/trainer/kernels/norm/residual_norm.h"

namespace pelab::trainer {

template <class Element>
struct RmsNorm {
  std::int64_t rows = 0;   // R, per member
  std::int64_t width = 0;  // W
  Members members;         // parameter_stride: of gamma
  const Element* x = nullptr;
  std::int64_t x_stride = 0;     // elements from one row of x to the next
  const float* gamma = nullptr;  // (W)
  float epsilon = 1e-6f;
  Element* normed = nullptr;      // n (M, R, W), contiguous: forward
  float* inverse_size = nullptr;  // (M, R): 1 / sqrt(mean(x^2) + eps). Forward writes it unless it
                                  // is null, backward reads it.
};

template <class Element>
struct RmsNormGradients {
  const Element* normed = nullptr;  // dn (M, R, W), contiguous
  Element* x = nullptr;             // dx, with the row stride of x
  float* partial = nullptr;         // (M, NormBlocks(R), W): each block's sums for gamma
};

// The part of one member, as a problem of one member.
template <class Element>
PELAB_HOST_DEVICE RmsNorm<Element> MemberOf(RmsNorm<Element> p, std::int64_t member) {
  Advance(p.x, member * p.rows * p.x_stride);
  Advance(p.gamma, member * p.members.parameter_stride);
  Advance(p.normed, member * p.rows * p.width);
  Advance(p.inverse_size, member * p.rows);
  return p;
}
template <class Element>
PELAB_HOST_DEVICE RmsNormGradients<Element> MemberOf(RmsNormGradients<Element> g,
                                                     const RmsNorm<Element>& of,
                                                     std::int64_t member) {
  Advance(g.normed, member * of.rows * of.width);
  Advance(g.x, member * of.rows * of.x_stride);
  Advance(g.partial, member * NormBlocks(of.rows) * of.width);
  return g;
}

// On the CPU: blocks [begin, end) of a problem of one member. W must be a multiple of kCpuLanes.
// Thread-safe for disjoint ranges.
void RmsNormForward(const RmsNorm<float>& problem, std::int64_t begin, std::int64_t end);
void RmsNormBackward(const RmsNorm<float>& problem, const RmsNormGradients<float>& gradients,
                     std::int64_t begin, std::int64_t end);

}  // namespace pelab::trainer
