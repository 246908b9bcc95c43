// The operations between two matrix products of the decoder, in one pass over memory: bias,
// dropout, residual and LayerNorm.
//
//   y = x + s m (z + b)          z: a product's output (an attention's or a feed-forward's),
//                                b its bias, m the dropout mask, s a sign
//   n = (y - mean(y)) / sqrt(var(y) + eps) * gamma + beta
//                                by rows (Ba et al. 2016, equation 4), var over the whole row
//
// Backward, with dn and dy the gradients of n and of y (the latter from the next part of the
// residual stream), and h the normed row before gamma and beta:
//
//   g  = dn gamma,   dx = dy + (g - mean(g) - h mean(g h)) / sqrt(var + eps)
//   dz = s m dx,   db = sum of dz over rows,   dgamma = sum of dn h,   dbeta = sum of dn
//
// Letters: M members (members.h), R rows (batch times positions), D width. Tensors are (M, R, D),
// contiguous. Sums over rows are taken in blocks of kNormBlockRows rows; then the blocks' sums are
// added in order. Results therefore depend only on the shape.
#pragma once

#include <cstdint>

#include "worker/trainer/kernels/dropout_stream.h"
#include "worker/trainer/kernels/members.h"
#include "worker/trainer/kernels/portable.h"

namespace pelab::trainer {

inline constexpr std::int64_t kNormBlockRows = 64;
// On the CPU, widths must be multiples of this.
inline constexpr std::int64_t kCpuLanes = 16;

PELAB_HOST_DEVICE std::int64_t NormBlocks(std::int64_t rows) {
  return (rows + kNormBlockRows - 1) / kNormBlockRows;
}

// Element: float, or Bf16 (bf16.h) on CUDA. Parameters, statistics and their gradients are always
// float.
template <class Element>
struct ResidualNorm {
  std::int64_t rows = 0;   // R, per member
  std::int64_t width = 0;  // D
  Members members;         // parameter_stride: of bias, gamma and beta
  // x. Row r of the other tensors uses row r mod residual_rows of x (0: as many rows as the
  // others), so that variants of one batch can share it. Forward only. Null: nothing is added to
  // the product.
  const Element* residual = nullptr;
  std::int64_t residual_rows = 0;
  const Element* product = nullptr;  // z; null: y = x
  const float* bias = nullptr;       // b (D); null: none
  float sign = 1;                    // s; -1 subtracts a contribution
  DropoutStream dropout;             // index: DropoutRow(r) D + column
  const float* gamma = nullptr;      // (D); null: no norm, n is not written
  const float* beta = nullptr;       // (D)
  float epsilon = 1e-5f;
  // Forward writes these, backward reads them. Forward: `sum` may be null if y is not needed, the
  // statistics may be null in evaluation.
  Element* sum = nullptr;              // y
  Element* normed = nullptr;           // n; backward does not read it
  float* mean = nullptr;               // (R)
  float* inverse_deviation = nullptr;  // (R): 1 / sqrt(var + eps)
};

template <class Element>
struct ResidualNormGradients {
  const Element* sum = nullptr;     // dy; null: zero
  const Element* normed = nullptr;  // dn; null only without a norm
  Element* residual = nullptr;      // dx; written; may be the same memory as `sum`
  Element* product = nullptr;       // dz; null: not needed, or equal to dx (no dropout, sign 1)
  // (M, blocks, 3, D) with blocks = ceil(R / kNormBlockRows): each block's sums for gamma, beta,
  // bias, which ResidualNormReduce… adds. Without a norm or a bias, the parts for it are not
  // written.
  float* partial = nullptr;
};

// The part of one member, as a problem of one member.
template <class Element>
PELAB_HOST_DEVICE ResidualNorm<Element> MemberOf(ResidualNorm<Element> p, std::int64_t member) {
  const std::int64_t elements = member * p.rows * p.width;
  const std::int64_t shared = member * p.residual_rows * p.width;
  Advance(p.residual, p.residual_rows > 0 ? shared : elements);
  Advance(p.product, elements);
  Advance(p.sum, elements);
  Advance(p.normed, elements);
  Advance(p.bias, member * p.members.parameter_stride);
  Advance(p.gamma, member * p.members.parameter_stride);
  Advance(p.beta, member * p.members.parameter_stride);
  Advance(p.mean, member * p.rows);
  Advance(p.inverse_deviation, member * p.rows);
  p.dropout = MemberOf(p.dropout, member);
  return p;
}
template <class Element>
PELAB_HOST_DEVICE ResidualNormGradients<Element> MemberOf(ResidualNormGradients<Element> g,
                                                          const ResidualNorm<Element>& of,
                                                          std::int64_t member) {
  const std::int64_t elements = member * of.rows * of.width;
  Advance(g.sum, elements);
  Advance(g.normed, elements);
  Advance(g.residual, elements);
  Advance(g.product, elements);
  Advance(g.partial, member * NormBlocks(of.rows) * 3 * of.width);
  return g;
}

// On the CPU: blocks [begin, end) of a problem of one member. D must be a multiple of kCpuLanes,
// and the dropout must hold its keys itself (WithKeys). Thread-safe for disjoint ranges.
void ResidualNormForward(const ResidualNorm<float>& problem, std::int64_t begin, std::int64_t end);
void ResidualNormBackward(const ResidualNorm<float>& problem,
                          const ResidualNormGradients<float>& gradients, std::int64_t begin,
                          std::int64_t end);
// to_gamma, to_beta, to_bias (D) = the blocks' sums, added in order; null: not needed.
void ResidualNormReduce(const float* partial, std::int64_t blocks, std::int64_t width,
                        float* to_gamma, float* to_beta, float* to_bias);

}  // namespace pelab::trainer
