// Solves the problem of attention.h on the CPU, in one pass over a head's data.
//
// A LibTorch build without MKL runs a batched product as one small GEMM call per head. At the sizes
// of this project (T = 32 … 128, d = 16) the overhead of these calls is several times the
// arithmetic. Here the queries, keys and values of a head are packed into a few kilobytes, and
// everything happens in cache, with vectors of 16 floats. The instruction set is chosen at run
// time. The backward pass computes the softmax again, which is faster than reading it from memory.
// Keys that no query of a tile sees cost nothing.
//
// Sums have a fixed order: results depend neither on the number of threads nor on which heads a
// call takes.
#pragma once

#include <cstdint>

#include "worker/trainer/kernels/attention/attention.h"

namespace pelab::trainer {

// The largest T for which the packed buffers are meant.
inline constexpr std::int64_t kMostCpuAttentionKeys = 512;

// Computes heads [begin, end) of the B * H heads, batch by batch. Thread-safe for disjoint ranges.
// Widths and T may have any value.
void AttentionForward(const FusedAttention<float>& problem, std::int64_t begin, std::int64_t end);
// Does not read `problem.out`. If the gradient of key_distance is needed, ranges must consist of
// whole sequences.
void AttentionBackward(const FusedAttention<float>& problem,
                       const FusedAttentionGradients<float>& gradients, std::int64_t begin,
                       std::int64_t end);

}  // namespace pelab::trainer
