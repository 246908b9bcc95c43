// Attention on CUDA as one pass over a head's data, forward and backward: no logit ever leaves the chip.
//
//   l_ij = scale (q_i R_i) (k_j S_j) + bias(h, j - i) + term_ij      q, k with their biases, turned by R and S (RoPE, xPos)
//   P_ij = softmax over the visible j,   o_i = sum over j of m_ij P_ij v_j                      m the dropout mask
// Backward (P from the logits again, by the log-sum-exp that forward left; Dao et al. 2022, algorithm 4):
//   dv_j = sum over i of m_ij P_ij do_i,   D_i = do_i o_i,   dl_ij = P_ij (m_ij do_i v_j - D_i)
//   dq_i = scale sum over j of dl_ij (k_j S_j) conj(R_i),    dk_j = scale sum over i of dl_ij (q_i R_i) conj(S_j)
//
// Letters: B batch, H heads, T keys, T' query rows: the last T' positions; query row i stands at position i + T - T', and
// "j - i" above means positions. w width of queries and keys, d width of values.
//
// Element is float or Bf16 (bf16.h); sums, softmax and everything that is declared float are 32-bit. Sums run in an order
// that depends on shapes alone; nothing is added atomically. Launchers are thread-safe and only enqueue.
#pragma once

#include <cstdint>

#include "worker/trainer/kernels/bf16.h"
#include "worker/trainer/kernels/dropout_stream.h"
#include "worker/trainer/kernels/members.h"
#include "worker/trainer/kernels/portable.h"

namespace pelab::trainer {

// A (B, rows, H, w or d) view whose last dimension is contiguous; strides in elements, that of rows under 2^31. May be a
// slice of a projection (B, T, 3, H, d).
template <class Element>
struct HeadRows {
  Element* data = nullptr;
  std::int64_t batch_stride = 0;
  std::int64_t row_stride = 0;
  std::int64_t head_stride = 0;
};

// A (B, H, T', T) view that may repeat along any dimension (stride 0); one head's part of it spans less than 2^31.
struct AttentionTerm {
  const float* data = nullptr;  // null: nothing
  std::int64_t batch_stride = 0;
  std::int64_t head_stride = 0;
  std::int64_t row_stride = 0;
  std::int64_t key_stride = 0;
};

template <class Element>
struct FusedAttention {
  std::int64_t batch = 0;        // B, of all members
  std::int64_t heads = 0;        // H
  std::int64_t rows = 0;         // T'
  std::int64_t keys = 0;         // T
  std::int64_t width = 0;        // w
  std::int64_t value_width = 0;  // d
  Members members;               // B/M sequences each; parameter_stride: of the three biases
  float scale = 1;
  HeadRows<const Element> query;  // (B, T', H, w)
  HeadRows<const Element> key;    // (B, T, H, w)
  HeadRows<const Element> value;  // (B, T, H, d)

  // Added to what is loaded; null: nothing. Contiguous.
  const float* query_bias = nullptr;  // (H, w)
  const float* key_bias = nullptr;    // (H, w)
  const float* value_bias = nullptr;  // (H, d)
  // By position, (at least T, 1 or H, w/2) complex numbers as pairs (real, imaginary), contiguous: adjacent channels as
  // a complex number are multiplied by them, after the bias. Null: not turned.
  const float* query_turns = nullptr;
  const float* key_turns = nullptr;
  bool turns_by_head = false;  // H of them a position; else 1

  // What a query sees: at least one key, always.
  bool causal = false;                    // keys not after it
  const std::int64_t* lengths = nullptr;  // (B): keys 0 … length - 1; null: all

  // Added to the scaled logits.
  const float* diagonal = nullptr;  // (1 or M, 1 or H, 2T - 1): entry j - i + T - 1
  bool diagonal_by_head = false;    // H of them; else 1
  bool diagonal_by_member = false;  // M of those; else the same for all
  const float* slopes = nullptr;    // (H): -slope |i - j|
  // scale (q_i R_i) a_(j-i) (Shaw et al. 2018, equation 4): a (M, 2T - 1, w), as above. On a CPU alone; null: nothing.
  const float* key_distance = nullptr;
  AttentionTerm term;

  // Index: that of a member's (B/M, H, T', T), contiguous; where it skips positions, both T' and T are without them.
  DropoutStream dropout;

  HeadRows<Element>
      out;  // (B, T', H, d): written forward, read backward, though not by tensor cores
  // What rounding to bfloat16 took from out, likewise: D is made of both, since what cancels in dl is as large as it. Null:
  // D is made of out alone.
  HeadRows<Element> out_rest;
  float* log_sum_exp = nullptr;  // (B, H, T') of the logits, likewise; forward: null in evaluation
};

template <class Element>
struct FusedAttentionGradients {
  HeadRows<const Element> out;  // do
  // Of what was loaded, before biases and turns; written.
  HeadRows<Element> query;
  HeadRows<Element> key;
  HeadRows<Element> value;
  // Each sequence's and head's sums; null: not wanted. SumAttentionPartialsOnCuda adds them up.
  float* query_bias = nullptr;  // (B, H, w)
  float* key_bias = nullptr;    // (B, H, w)
  float* value_bias = nullptr;  // (B, H, d)
  // From sequence to sequence of these three, so that they may be slices of one (B, 3, H, d); 0: contiguous.
  std::int64_t bias_batch_stride = 0;
  float* diagonal = nullptr;  // (B, H, 2T - 1), contiguous
  // (B, 2T - 1, w): each sequence's sums, of all its heads.
  float* key_distance = nullptr;
  float* term = nullptr;  // (B, H, T', T), contiguous: dl itself; null: not wanted
};

inline constexpr std::int64_t kMostAttentionWidth = 128;      // of w
inline constexpr std::int64_t kMostAttentionValueWidth = 64;  // of d
inline constexpr std::int64_t kMostAttentionKeys = 1024;

// Whether the kernels take the problem: w, d and T as above, w even where it is turned, fewer than 2^32 logits where some
// are dropped. Where not, both launchers return an error.
template <class Element>
bool AttentionFits(const FusedAttention<Element>& problem) {
  const FusedAttention<Element>& p = problem;
  const bool turned = p.query_turns != nullptr || p.key_turns != nullptr;
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

// Whether tensor cores do it (bfloat16 products, float32 sums): Bf16, T at most kMostTensorKeys, w and d two of 16, 32 and
// 64 with d = w or (32, 16), no term, and rows that lie at multiples of eight elements. The softmax's weights and their
// gradients are then rounded to bfloat16 before they are multiplied, queries and keys after bias and turn.
inline constexpr std::int64_t kMostTensorKeys = 128;
template <class Element>
bool InEights(const HeadRows<Element>& rows) {
  return reinterpret_cast<std::uintptr_t>(rows.data) % 16 == 0 && rows.batch_stride % 8 == 0 &&
         rows.row_stride % 8 == 0 && rows.head_stride % 8 == 0;
}
inline bool AttentionUsesTensorCores(const FusedAttention<float>&) { return false; }
inline bool AttentionUsesTensorCores(const FusedAttention<Bf16>& p) {
  const bool shaped =
      (p.width == p.value_width && (p.width == 16 || p.width == 32 || p.width == 64)) ||
      (p.width == 32 && p.value_width == 16);
  return shaped && p.keys <= kMostTensorKeys && p.term.data == nullptr && InEights(p.query) &&
         InEights(p.key) && InEights(p.value) && InEights(p.out);
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

// Null when enqueued, else the CUDA runtime's text. Element: float, Bf16.
template <class Element>
KernelError AttentionForwardOnCuda(const FusedAttention<Element>& problem, CudaStream stream);
template <class Element>
KernelError AttentionBackwardOnCuda(const FusedAttention<Element>& problem,
                                    const FusedAttentionGradients<Element>& gradients,
                                    CudaStream stream);

// sums (M, columns) = the sums over the rows of partial (M, rows, columns), contiguous. Of a member with B sequences: for a
// bias rows B, columns H w or H d; for the diagonal rows B, columns H (2T - 1), or, where the heads share it, rows B H,
// columns 2T - 1.
KernelError SumAttentionPartialsOnCuda(const float* partial, std::int64_t members,
                                       std::int64_t rows, std::int64_t columns, float* sums,
                                       CudaStream stream);

}  // namespace pelab::trainer
