// The inside of a feed-forward layer, in one pass over memory: a = m act(h + b). act is the
// rectifier or GELU(u) = u Phi(u) (Hendrycks and Gimpel 2016, the exact form), m the dropout mask.
//
// Backward: dh = m act'(h + b) da, db = the sum of dh over rows. The letters are those of
// residual_norm.h, with F for the width. Sums over rows are also taken in blocks of kNormBlockRows
// rows.
#pragma once

#include <cstdint>

#include "worker/trainer/kernels/dropout_stream.h"
#include "worker/trainer/kernels/norm/residual_norm.h"

namespace pelab::trainer {

template <class Element>
struct BiasActivation {
  std::int64_t rows = 0;             // R, per member
  std::int64_t width = 0;            // F
  Members members;                   // parameter_stride: of the bias
  const Element* product = nullptr;  // h (M, R, F)
  const float* bias = nullptr;       // b (F)
  bool gelu = false;                 // else the rectifier
  DropoutStream dropout;             // index: DropoutRow(r) F + column
  Element* out = nullptr;            // a (M, R, F): forward
};

template <class Element>
struct BiasActivationGradients {
  const Element* out = nullptr;  // da
  Element* product = nullptr;    // dh; may be the same memory as `out`
  float* partial = nullptr;      // (M, NormBlocks(R), F): each block's sums for the bias
};

// The part of one member, as a problem of one member.
template <class Element>
PELAB_HOST_DEVICE BiasActivation<Element> MemberOf(BiasActivation<Element> p, std::int64_t member) {
  Advance(p.product, member * p.rows * p.width);
  Advance(p.out, member * p.rows * p.width);
  Advance(p.bias, member * p.members.parameter_stride);
  p.dropout = MemberOf(p.dropout, member);
  return p;
}
template <class Element>
PELAB_HOST_DEVICE BiasActivationGradients<Element> MemberOf(BiasActivationGradients<Element> g,
                                                            const BiasActivation<Element>& of,
                                                            std::int64_t member) {
  Advance(g.out, member * of.rows * of.width);
  Advance(g.product, member * of.rows * of.width);
  Advance(g.partial, member * NormBlocks(of.rows) * of.width);
  return g;
}

// On the CPU: blocks [begin, end) of a problem of one member. F must be a multiple of kCpuLanes,
// and the dropout must hold its keys itself (WithKeys). Thread-safe for disjoint ranges.
void BiasActivationForward(const BiasActivation<float>& problem, std::int64_t begin,
                           std::int64_t end);
void BiasActivationBackward(const BiasActivation<float>& problem,
                            const BiasActivationGradients<float>& gradients, std::int64_t begin,
                            std::int64_t end);

}  // namespace pelab::trainer
