// Scaled dot-product attention on the CPU as one pass over a head's data, forward and backward. No
// LibTorch.
//
// A LibTorch build without MKL runs a batched product as one small GEMM call a head, whose overhead
// is several times the arithmetic at the sizes of this project (T = 32 … 128, d = 16). Here a
// head's queries, keys and values are packed into a few kilobytes and everything happens in cache,
// in vectors of 16 floats; the instruction set is chosen at run time.
//
// Letters: B batch, H heads, R query rows, T keys, w width of queries and keys, d width of values. Sums run in a fixed order: results
// depend on neither thread count nor on which heads a call takes.
#pragma once

#include <cstdint>

namespace pelab::trainer {

// A (B, rows, H, w or d) view whose last dimension is contiguous.
struct HeadsView {
  float* data = nullptr;
  std::int64_t batch_stride = 0;
  std::int64_t row_stride = 0;
  std::int64_t head_stride = 0;

  float* At(std::int64_t batch, std::int64_t head) const {
    return data + batch * batch_stride + head * head_stride;
  }
};

// A (B, H, R, T) view that may repeat along any dimension (stride 0).
struct LogitsView {
  float* data = nullptr;  // null: nothing to add, nothing to keep
  std::int64_t batch_stride = 0;
  std::int64_t head_stride = 0;
  std::int64_t row_stride = 0;
  std::int64_t key_stride = 0;
};

struct AttentionProblem {
  std::int64_t heads = 0;
  std::int64_t rows = 0;
  std::int64_t keys = 0;
  std::int64_t width = 0;        // w
  std::int64_t value_width = 0;  // d
  float scale = 1;               // of the products q k
  HeadsView query, key, value;
  LogitsView term;   // added to the scaled products; -inf masks
  LogitsView mask;   // multiplies the softmax: dropout
  LogitsView saved;  // the softmax: written forward, read backward
  HeadsView out;     // forward: written; backward: not used
  // Backward only.
  HeadsView out_gradient;                                  // read
  HeadsView query_gradient, key_gradient, value_gradient;  // written
  LogitsView logits_gradient;                              // written where not null
};

// The largest T that the packed buffers are meant for.
inline constexpr std::int64_t kMostKernelKeys = 512;

// Heads [begin, end) of the B * H heads, batch by batch. Thread-safe for disjoint ranges.
void AttentionForward(const AttentionProblem& problem, std::int64_t begin, std::int64_t end);
void AttentionBackward(const AttentionProblem& problem, std::int64_t begin, std::int64_t end);

}  // namespace pelab::trainer
