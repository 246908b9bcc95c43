// Attention on CUDA as one pass over a head's data, forward and backward: logits never leave the
// chip. (attention_cpu.h solves the same problem on the CPU.)
//
//   l_ij = scale (q_i R_i) (k_j S_j) + bias(h, j - i) + term_ij
//             q, k with their biases, rotated by R and S (RoPE, xPos)
//   P_ij = softmax over the visible j,   o_i = sum over j of m_ij P_ij v_j       m the dropout mask
//
// Backward computes P again from the logits and the log-sum-exp that forward stored (Dao et al.
// 2022, algorithm 4):
//
//   dv_j = sum over i of m_ij P_ij do_i,   D_i = do_i o_i,   dl_ij = P_ij (m_ij do_i v_j - D_i)
//   dq_i = scale sum over j of dl_ij (k_j S_j) conj(R_i)
//   dk_j = scale sum over i of dl_ij (q_i R_i) conj(S_j)
//
// Letters: B batch, H heads, T keys, T' query rows (the last T' positions), w width of queries and
// keys, d width of values. Query row i has position i + T - T'; "j - i" above means positions.
//
// Element is float or Bf16 (bf16.h). Sums, the softmax and everything declared float are 32-bit.
// The order of sums depends only on shapes, and nothing is added atomically. Launchers are
// thread-safe and only enqueue.
#pragma once

#include <cstdint>

#include "worker/trainer/kernels/bf16.h"
#include "worker/trainer/kernels/dropout_stream.h"
#include "worker/trainer/kernels/members.h"
#include "worker/trainer/kernels/portable.h"

namespace pelab::trainer {

// A view (B, rows, H, w or d) whose last dimension is contiguous. Strides are in elements; that of
// rows is under 2^31. May be a slice of a projection (B, T, 3, H, d).
template <class Element>
struct HeadRows {
  Element* data = nullptr;
  std::int64_t batch_stride = 0;
  std::int64_t row_stride = 0;
  std::int64_t head_stride = 0;
};

// A view (B, H, T', T) that may repeat along any dimension (stride 0). The part of one head spans
// less than 2^31 elements.
struct AttentionTerm {
  const float* data = nullptr;  // null: nothing is added
  std::int64_t batch_stride = 0;
  std::int64_t head_stride = 0;
  std::int64_t row_stride = 0;
  std::int64_t key_stride = 0;
};

template <class Element>
struct FusedAttention {
  std::int64_t batch = 0;        // B, of all members together
  std::int64_t heads = 0;        // H
  std::int64_t rows = 0;         // T'
  std::int64_t keys = 0;         // T
  std::int64_t width = 0;        // w
  std::int64_t value_width = 0;  // d
  Members members;               // each has B/M sequences; parameter_stride: of the three biases
  float scale = 1;
  HeadRows<const Element> query;  // (B, T', H, w)
  HeadRows<const Element> key;    // (B, T, H, w)
  HeadRows<const Element> value;  // (B, T, H, d)

  // Added to the loaded elements. Contiguous; null: nothing is added.
  const float* query_bias = nullptr;  // (H, w)
  const float* key_bias = nullptr;    // (H, w)
  const float* value_bias = nullptr;  // (H, d)
  // Rotations by position: (at least T, 1 or H, w/2) complex numbers as pairs (real, imaginary),
  // contiguous. After the bias, adjacent channels are multiplied by them as complex numbers. Null:
  // no rotation.
  const float* query_rotations = nullptr;
  const float* key_rotations = nullptr;
  bool rotations_by_head = false;  // true: H per position; else 1

  // The keys that a query sees. It always sees at least one.
  bool causal = false;                    // only keys that are not after the query
  const std::int64_t* lengths = nullptr;  // (B): only keys 0 … length - 1; null: all

  // Added to the scaled logits.
  const float* diagonal = nullptr;  // (1 or M, 1 or H, 2T - 1): entry j - i + T - 1
  bool diagonal_by_head = false;    // true: H of them; else 1
  bool diagonal_by_member = false;  // true: one for each of the M members; else the same for all
  const float* slopes = nullptr;    // (H): -slope |i - j|
  // Adds scale (q_i R_i) a_(j-i) (Shaw et al. 2018, equation 4) with a (M, 2T - 1, w), entry j - i
  // + T - 1. Only on a CPU; null: nothing is added.
  const float* key_distance = nullptr;
  AttentionTerm term;

  // Element index: the place in the member's logits (B/M, H, T', T), contiguous. If the stream
  // skips positions, the index counts them, although T' and T above do not.
  DropoutStream dropout;

  // (B, T', H, d): written by forward; read by backward, unless AttentionKeepsLogits or on a CPU.
  HeadRows<Element> out;
  // The difference that rounding `out` to bfloat16 removed; also written by forward and read by
  // backward. D is computed from both, because the terms that cancel in dl are as large as this
  // difference. Null: D is computed from `out` only.
  HeadRows<Element> out_rest;
  // (B, H, T'), of the logits; written by forward (null in evaluation), read by backward.
  float* log_sum_exp = nullptr;
  // One bit for each weight that dropout keeps: AttentionKeptWords words, in the order of the
  // threads that read them. The kernels that keep all logits write them in forward, unless they are
  // null, and read them in backward. To draw them again there would take 13 instructions for each
  // weight, as many as the rest of it.
  std::uint32_t* kept = nullptr;
};

template <class Element>
struct FusedAttentionGradients {
  HeadRows<const Element> out;  // do
  // Gradients of the loaded elements, before biases and rotations. Written.
  HeadRows<Element> query;
  HeadRows<Element> key;
  HeadRows<Element> value;
  // Partial sums for each sequence and head; null: not needed. SumAttentionPartialsOnCuda adds
  // them.
  float* query_bias = nullptr;  // (B, H, w)
  float* key_bias = nullptr;    // (B, H, w)
  float* value_bias = nullptr;  // (B, H, d)
  // The stride from sequence to sequence of these three, which may be slices of one tensor (B, 3,
  // H, d); 0: contiguous.
  std::int64_t bias_batch_stride = 0;
  float* diagonal = nullptr;  // (B, H, 2T - 1), contiguous
  // (B, 2T - 1, w): sums for each sequence over all its heads.
  float* key_distance = nullptr;
  float* term = nullptr;  // (B, H, T', T), contiguous: dl; null: not needed
};

inline constexpr std::int64_t kMostAttentionWidth = 128;      // of w
inline constexpr std::int64_t kMostAttentionValueWidth = 64;  // of d
inline constexpr std::int64_t kMostAttentionKeys = 1024;

// Whether the CUDA kernels accept the problem: w, d and T within the limits above, w even if there
// are rotations, no key_distance, fewer than 2^31 heads in all, and at most 2^32 logits (with
// skipped positions) if dropout is on. If not, both launchers return an error.
template <class Element>
bool AttentionFits(const FusedAttention<Element>& problem) {
  const FusedAttention<Element>& p = problem;
  const bool turned = p.query_rotations != nullptr || p.key_rotations != nullptr;
  const bool dropped = p.dropout.threshold != 0;
  return p.batch > 0 && p.heads > 0 && p.rows > 0 && p.rows <= p.keys &&
         p.keys <= kMostAttentionKeys && p.width > 0 && p.width <= kMostAttentionWidth &&
         p.value_width > 0 && p.batch % p.members.count == 0 && p.key_distance == nullptr &&
         p.value_width <= kMostAttentionValueWidth && !(turned && p.width % 2 != 0) &&
         p.batch * p.heads < std::int64_t{1} << 31 &&
         (!dropped ||
          p.batch * p.heads * (p.rows + p.dropout.skipped) * (p.keys + p.dropout.skipped) <=
              std::int64_t{1} << 32);
}

// Whether every row starts at a multiple of eight elements, and the data at one of 16 bytes.
template <class Element>
bool InEights(const HeadRows<Element>& rows) {
  return reinterpret_cast<std::uintptr_t>(rows.data) % 16 == 0 && rows.batch_stride % 8 == 0 &&
         rows.row_stride % 8 == 0 && rows.head_stride % 8 == 0;
}
// Whether tensor cores compute the problem (bfloat16 products, float32 sums): Bf16, d = w with 16,
// 32 or 64, or (w, d) = (32, 16), no term, and rows that start at multiples of eight elements. The
// weights of the softmax and their gradients are then rounded to bfloat16 before they are
// multiplied; queries and keys are rounded after bias and rotation.
inline bool AttentionUsesTensorCores(const FusedAttention<float>&) { return false; }
inline bool AttentionUsesTensorCores(const FusedAttention<Bf16>& p) {
  const bool shaped =
      (p.width == p.value_width && (p.width == 16 || p.width == 32 || p.width == 64)) ||
      (p.width == 32 && p.value_width == 16);
  return shaped && p.term.data == nullptr && InEights(p.query) && InEights(p.key) &&
         InEights(p.value) && InEights(p.out) && InEights(p.out_rest);
}
// Whether their kernels keep all logits of a query, T at most kMostTensorKeys: backward then does
// not read `out`. With more keys, these pass through shared memory in tiles.
inline constexpr std::int64_t kMostTensorKeys = 128;
template <class Element>
bool AttentionKeepsLogits(const FusedAttention<Element>& p) {
  return AttentionUsesTensorCores(p) && p.keys <= kMostTensorKeys;
}
// The words of FusedAttention::kept. Zero if backward reads none: without dropout, or if other
// kernels compute the problem.
template <class Element>
std::int64_t AttentionKeptWords(const FusedAttention<Element>& p) {
  if (p.dropout.threshold == 0 || !AttentionKeepsLogits(p)) return 0;
  // A warp has 16 rows. Each of its 32 threads has a word for every 64 keys.
  return p.batch * p.heads * ((p.rows + 15) / 16) * (p.keys > 64 ? 2 : 1) * 32;
}
inline bool AttentionUsesTensorCores(const FusedAttention<float>&,
                                     const FusedAttentionGradients<float>&) {
  return false;
}
inline bool AttentionUsesTensorCores(const FusedAttention<Bf16>& p,
                                     const FusedAttentionGradients<Bf16>& g) {
  return AttentionUsesTensorCores(p) && g.term == nullptr && InEights(g.query) && InEights(g.key) &&
         InEights(g.value) && InEights(g.out);
}

// Return null if the work was enqueued, else the CUDA runtime's error text. Element: float, Bf16.
template <class Element>
KernelError AttentionForwardOnCuda(const FusedAttention<Element>& problem, CudaStream stream);
template <class Element>
KernelError AttentionBackwardOnCuda(const FusedAttention<Element>& problem,
                                    const FusedAttentionGradients<Element>& gradients,
                                    CudaStream stream);

// sums (M, columns) = the sums over the rows of partial (M, rows, columns), contiguous. For a
// member with B sequences:
//   a bias: B rows, H w or H d columns
//   the diagonal: B rows, H (2T - 1) columns; if the heads share it, B H rows, 2T - 1 columns
KernelError SumAttentionPartialsOnCuda(const float* partial, std::int64_t members,
                                       std::int64_t rows, std::int64_t columns, float* sums,
                                       CudaStream stream);

}  // namespace pelab::trainer
