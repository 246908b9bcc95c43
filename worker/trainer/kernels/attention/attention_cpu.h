// The problem of attention.h on the CPU, as one pass over a head's data.
//
// A LibTorch build without MKL runs a batched product as one small GEMM call a head, whose overhead is several times the
// arithmetic at the sizes of this project (T = 32 … 128, d = 16). Here a head's queries, keys and values are packed into a
// few kilobytes and everything happens in cache, in vectors of 16 floats; the instruction set is chosen at run time. The
// backward pass computes the softmax anew, which is quicker than reading it from memory. Keys that no query of a tile
// sees cost nothing.
//
// Sums run in a fixed order: results depend on neither thread count nor on which heads a call takes.
#pragma once

#include <cstdint>

#include "worker/trainer/kernels/attention/attention.h"

namespace pelab::trainer {

// The largest T that the packed buffers are meant for.
inline constexpr std::int64_t kMostCpuAttentionKeys = 512;

// Heads [begin, end) of the B * H heads, batch by batch. Thread-safe for disjoint ranges. Widths and T may be any.
void AttentionForward(const FusedAttention<float>& problem, std::int64_t begin, std::int64_t end);
// Does not read `problem.out`. Where the gradient of key_distance is wanted, ranges hold whole sequences.
void AttentionBackward(const FusedAttention<float>& problem,
                       const FusedAttentionGradients<float>& gradients, std::int64_t begin,
                       std::int64_t end);

}  // namespace pelab::trainer
