// Chooses kernel and grid for a problem. The caller passes the launch itself: launch(grid, block,
// dynamic bytes, kernel, arguments…). It is <<<>>> in attention.cu and the emulation in tests.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "worker/trainer/kernels/attention/attention.h"
#include "worker/trainer/kernels/attention/attention_backward.cuh"
#include "worker/trainer/kernels/attention/attention_forward.cuh"
#include "worker/trainer/kernels/attention/attention_streamed_backward.cuh"
#include "worker/trainer/kernels/attention/attention_streamed_forward.cuh"
#include "worker/trainer/kernels/attention/attention_sums.cuh"
#include "worker/trainer/kernels/attention/attention_tensor_backward.cuh"
#include "worker/trainer/kernels/attention/attention_tensor_forward.cuh"

namespace pelab::trainer {

// Calls visit(AttentionShape) with the smallest shape that holds the widths.
template <class Visit>
void WithAttentionShape(std::int64_t width, std::int64_t value_width, const Visit& visit) {
  if (width <= 8 && value_width <= 8) return visit(AttentionShape<8, 8>());
  if (width <= 16 && value_width <= 16) return visit(AttentionShape<16, 16>());
  if (width <= 32 && value_width <= 16) return visit(AttentionShape<32, 16>());
  if (width <= 32 && value_width <= 32) return visit(AttentionShape<32, 32>());
  if (width <= 64) return visit(AttentionShape<64, 64>());
  return visit(AttentionShape<128, 64>());
}

// Whether every row can be read four elements at a time.
template <class Element>
bool InVectors(const HeadRows<Element>& rows, std::int64_t width) {
  constexpr std::uintptr_t kBytes = 4 * sizeof(Element);
  return rows.data == nullptr ||
         (width % 4 == 0 && reinterpret_cast<std::uintptr_t>(rows.data) % kBytes == 0 &&
          rows.batch_stride % 4 == 0 && rows.row_stride % 4 == 0 && rows.head_stride % 4 == 0);
}

template <class Element>
bool InVectors(const FusedAttention<Element>& p) {
  return InVectors(p.query, p.width) && InVectors(p.key, p.width) &&
         InVectors(p.value, p.value_width) && InVectors(p.out, p.value_width) &&
         InVectors(p.out_rest, p.value_width);
}

template <class Element>
bool InVectors(const FusedAttentionGradients<Element>& g, std::int64_t width,
               std::int64_t value_width) {
  return InVectors(g.query, width) && InVectors(g.key, width) && InVectors(g.value, value_width) &&
         InVectors(g.out, value_width);
}

// A plan for `rows` rows in registers, `rows_a_thread` per thread, and `others` rows in shared
// memory.
template <class Shape>
AttentionPlan PlanAttention(std::int64_t rows, int rows_a_thread, std::int64_t others) {
  // With more heads per block, each would have too little shared memory.
  constexpr int kFewestThreads = 16;
  // Small enough that several blocks run on one multiprocessor.
  constexpr std::int64_t kTileFloats = 8192;
  AttentionPlan plan;
  plan.threads = std::max(kFewestThreads, Shape::kLanes);
  while (plan.threads < kAttentionThreads && plan.threads / Shape::kLanes * rows_a_thread < rows) {
    plan.threads *= 2;
  }
  plan.heads = kAttentionThreads / plan.threads;
  const auto steps = [](std::int64_t n) { return n / kAttentionStep * kAttentionStep; };
  const std::int64_t most =
      steps(kTileFloats / (plan.heads * (Shape::kWidth + Shape::kValueWidth)));
  plan.tile = static_cast<int>(
      std::max<std::int64_t>(kAttentionStep, std::min(most, steps(others + kAttentionStep - 1))));
  return plan;
}

inline unsigned Blocks(std::int64_t count, std::int64_t a_block) {
  return static_cast<unsigned>((count + a_block - 1) / a_block);
}

template <class Element, class Launch>
void LaunchPlainAttentionForward(const FusedAttention<Element>& p, const Launch& launch) {
  WithAttentionShape(p.width, p.value_width, [&](auto shape) {
    using Shape = decltype(shape);
    AttentionPlan plan = PlanAttention<Shape>(p.rows, Shape::kForwardRows, p.keys);
    plan.vectors = InVectors(p);
    launch(dim3{Blocks(p.batch * p.heads, plan.heads), 1, 1}, dim3{kAttentionThreads, 1, 1},
           sizeof(float) * ForwardSharedFloats<Shape>(p, plan),
           &AttentionForwardKernel<Element, Shape::kWidth, Shape::kValueWidth>, p, plan);
  });
}

template <class Element, class Launch>
void LaunchPlainAttentionBackward(const FusedAttention<Element>& p,
                                  const FusedAttentionGradients<Element>& g, const Launch& launch) {
  WithAttentionShape(p.width, p.value_width, [&](auto shape) {
    using Shape = decltype(shape);
    AttentionPlan plan = PlanAttention<Shape>(p.keys, 1, p.keys);
    plan.vectors = InVectors(p) && InVectors(g, p.width, p.value_width);
    const BackwardLayout layout(p, g, plan, Shape::kWidth, Shape::kValueWidth);
    launch(dim3{Blocks(p.batch * p.heads, plan.heads), 1, 1}, dim3{kAttentionThreads, 1, 1},
           sizeof(float) * static_cast<std::size_t>(layout.Whole(plan)),
           &AttentionBackwardKernel<Element, Shape::kWidth, Shape::kValueWidth>, p, g, plan);
  });
}

// Calls visit(StreamedShape) with the widths of the problem. AttentionUsesTensorCores must have
// returned true.
template <class Visit>
void WithStreamedShape(const FusedAttention<Bf16>& p, const Visit& visit) {
  if (p.width == 16) return visit(StreamedShape<16, 16>());
  if (p.width == 64) return visit(StreamedShape<64, 64>());
  if (p.value_width == 16) return visit(StreamedShape<32, 16>());
  return visit(StreamedShape<32, 32>());
}

// The same with a TensorShape, for at most kMostTensorKeys keys.
template <class Visit>
void WithTensorShape(const FusedAttention<Bf16>& p, const Visit& visit) {
  WithStreamedShape(p, [&](auto widths) {
    using Widths = decltype(widths);
    if (p.keys <= 64) return visit(TensorShape<Widths::kWidth, Widths::kValueWidth, 64>());
    return visit(TensorShape<Widths::kWidth, Widths::kValueWidth, 128>());
  });
}

inline AttentionPlan PlanTensorAttention(int threads) {
  AttentionPlan plan;
  plan.threads = threads;
  plan.heads = 1;
  plan.vectors = true;
  return plan;
}

inline std::size_t TensorForwardBytes(const FusedAttention<Bf16>& p) {
  std::size_t bytes = 0;
  WithTensorShape(p, [&](auto shape) { bytes = TensorForwardBytes<decltype(shape)>(p); });
  return bytes;
}

inline std::size_t TensorBackwardBytes(const FusedAttention<Bf16>& p) {
  std::size_t bytes = 0;
  WithTensorShape(p, [&](auto shape) { bytes = TensorBackwardLayout<decltype(shape)>(p).end; });
  return bytes;
}

template <class Launch>
void LaunchTensorAttentionForward(const FusedAttention<Bf16>& p, const Launch& launch) {
  WithTensorShape(p, [&](auto shape) {
    using Shape = decltype(shape);
    launch(dim3{Blocks(p.batch * p.heads, 1), 1, 1}, dim3{Shape::kThreads, 1, 1},
           static_cast<std::size_t>(TensorForwardBytes<Shape>(p)),
           &TensorAttentionForwardKernel<Shape::kWidth, Shape::kValueWidth, Shape::kKeys>, p,
           PlanTensorAttention(Shape::kThreads));
  });
}

template <class Launch>
void LaunchTensorAttentionBackward(const FusedAttention<Bf16>& p,
                                   const FusedAttentionGradients<Bf16>& g, const Launch& launch) {
  WithTensorShape(p, [&](auto shape) {
    using Shape = decltype(shape);
    const TensorBackwardLayout<Shape> layout(p);
    launch(dim3{Blocks(p.batch * p.heads, 1), 1, 1}, dim3{Shape::kThreads, 1, 1},
           static_cast<std::size_t>(layout.end),
           &TensorAttentionBackwardKernel<Shape::kWidth, Shape::kValueWidth, Shape::kKeys>, p, g,
           PlanTensorAttention(Shape::kThreads));
  });
}

inline std::size_t StreamedForwardBytes(const FusedAttention<Bf16>& p) {
  std::size_t bytes = 0;
  WithStreamedShape(p, [&](auto shape) { bytes = StreamedForwardLayout<decltype(shape)>(p).end; });
  return bytes;
}

inline std::size_t StreamedBackwardBytes(const FusedAttention<Bf16>& p,
                                         const FusedAttentionGradients<Bf16>& g) {
  std::size_t bytes = 0;
  WithStreamedShape(p,
                    [&](auto shape) { bytes = StreamedBackwardLayout<decltype(shape)>(p, g).end; });
  return bytes;
}

template <class Launch>
void LaunchStreamedAttentionForward(const FusedAttention<Bf16>& p, const Launch& launch) {
  WithStreamedShape(p, [&](auto shape) {
    using Shape = decltype(shape);
    launch(dim3{Blocks(p.batch * p.heads, 1), Blocks(p.rows, kStreamedRows), 1},
           dim3{kStreamedThreads, 1, 1}, StreamedForwardBytes(p),
           &StreamedAttentionForwardKernel<Shape::kWidth, Shape::kValueWidth>, p,
           PlanTensorAttention(kStreamedThreads));
  });
}

template <class Launch>
void LaunchStreamedAttentionBackward(const FusedAttention<Bf16>& p,
                                     const FusedAttentionGradients<Bf16>& g, const Launch& launch) {
  WithStreamedShape(p, [&](auto shape) {
    using Shape = decltype(shape);
    launch(dim3{Blocks(p.batch * p.heads, 1), 1, 1}, dim3{kStreamedThreads, 1, 1},
           StreamedBackwardBytes(p, g),
           &StreamedAttentionBackwardKernel<Shape::kWidth, Shape::kValueWidth>, p, g,
           PlanTensorAttention(kStreamedThreads));
  });
}

// `most_shared`: the bytes of shared memory that a block may have on the device. If the kernels
// that keep all logits need more, those that stream are used, and if these need more, the plain
// ones.
template <class Element, class Launch>
void LaunchAttentionForward(const FusedAttention<Element>& p, std::size_t most_shared,
                            const Launch& launch) {
  if constexpr (std::is_same_v<Element, Bf16>) {
    if (AttentionKeepsLogits(p) && TensorForwardBytes(p) <= most_shared) {
      return LaunchTensorAttentionForward(p, launch);
    }
    if (AttentionUsesTensorCores(p) && StreamedForwardBytes(p) <= most_shared) {
      return LaunchStreamedAttentionForward(p, launch);
    }
  }
  LaunchPlainAttentionForward(p, launch);
}

template <class Element, class Launch>
void LaunchAttentionBackward(const FusedAttention<Element>& p,
                             const FusedAttentionGradients<Element>& g, std::size_t most_shared,
                             const Launch& launch) {
  if constexpr (std::is_same_v<Element, Bf16>) {
    if (!AttentionUsesTensorCores(p, g)) return LaunchPlainAttentionBackward(p, g, launch);
    if (AttentionKeepsLogits(p) && TensorBackwardBytes(p) <= most_shared) {
      return LaunchTensorAttentionBackward(p, g, launch);
    }
    if (StreamedBackwardBytes(p, g) <= most_shared) {
      return LaunchStreamedAttentionBackward(p, g, launch);
    }
  }
  LaunchPlainAttentionBackward(p, g, launch);
}

template <class Launch>
void LaunchSumAttentionPartials(const float* partial, std::int64_t members, std::int64_t rows,
                                std::int64_t columns, float* sums, const Launch& launch) {
  launch(dim3{Blocks(columns, kSumColumns), 1, static_cast<unsigned>(members)},
         dim3{kSumColumns, kSumLanes, 1}, std::size_t{0}, &SumRowsKernel<float>, partial, rows,
         columns, sums);
}

}  // namespace pelab::trainer
