// Attention backward with ordinary arithmetic; a block processes a few heads. In the first half,
// one thread or a few lanes take each query row (for dq and the gradient of the diagonal), and keys
// and values go through shared memory. In the second half, they take each key row (for dk and dv),
// and queries and output gradients go through shared memory. Both halves compute the weights again
// from the logits.
#pragma once

#include <cstdint>

#include "worker/trainer/kernels/attention/attention_forward.cuh"
#include "worker/trainer/kernels/attention/attention_logits.cuh"
#include "worker/trainer/kernels/attention/attention_rows.cuh"

namespace pelab::trainer {

inline constexpr int kBackwardStep = 4;

// A segment is a group of lanes that hold neighboring rows of one head: a warp, or the threads of a
// head if they are fewer.
__host__ __device__ inline int SegmentLanes(const AttentionPlan& plan) {
  return plan.threads < 32 ? plan.threads : 32;
}
__host__ __device__ inline int Segments(const AttentionPlan& plan) {
  return kAttentionThreads / SegmentLanes(plan);
}

// The layout of shared memory: sizes and offsets in floats.
struct BackwardLayout {
  int tile;       // per head: `tile` rows of kWidth, then of kValueWidth
  int statistic;  // per head: pairs (log-sum-exp / log 2, D) for T' rows, padded to a step
  int table;      // per head: 2T - 1 if there is a diagonal
  int bins;       // per segment: 2T - 1 if the gradient of the diagonal is needed
  int biases;     // per segment: sums for the biases of queries, keys, values

  template <class Element>
  __host__ __device__ BackwardLayout(const FusedAttention<Element>& p,
                                     const FusedAttentionGradients<Element>& g,
                                     const AttentionPlan& plan, int width, int value_width)
      : tile(plan.tile * (width + value_width)),
        statistic(2 * ((static_cast<int>(p.rows) + kAttentionStep - 1) / kAttentionStep *
                       kAttentionStep)),
        table(p.diagonal == nullptr ? 0 : 2 * static_cast<int>(p.keys) - 1),
        bins(g.diagonal == nullptr ? 0 : 2 * static_cast<int>(p.keys) - 1),
        biases(2 * width + value_width) {}

  __host__ __device__ int Statistics(const AttentionPlan& plan) const { return plan.heads * tile; }
  __host__ __device__ int Tables(const AttentionPlan& plan) const {
    return Statistics(plan) + plan.heads * statistic;
  }
  __host__ __device__ int Bins(const AttentionPlan& plan) const {
    return Tables(plan) + plan.heads * table;
  }
  __host__ __device__ int Biases(const AttentionPlan& plan) const {
    return Bins(plan) + Segments(plan) * bins;
  }
  __host__ __device__ int Whole(const AttentionPlan& plan) const {
    return Biases(plan) + Segments(plan) * biases;
  }
};

// The products of a row in registers with kSteps rows in shared memory. All lanes must call it.
template <int kQuads, int kLanes, int kSteps>
__device__ __forceinline__ void Products(const float4 (&row)[kQuads], const float* others, int part,
                                         float (&products)[kSteps]) {
#pragma unroll
  for (int k = 0; k < kSteps; ++k) {
    float sum = 0;
#pragma unroll
    for (int c = 0; c < kQuads; ++c) {
      sum = Dot4(row[c], Load4(others + 4 * ((k * kQuads + c) * kLanes + part)), sum);
    }
    products[k] = LanesSum<kLanes>(sum);
  }
}

// sum += the weighted rows in shared memory, which Products has read before.
template <int kQuads, int kLanes, int kSteps>
__device__ __forceinline__ void AddRows(const float (&weights)[kSteps], const float* others,
                                        int part, float4 (&sum)[kQuads]) {
#pragma unroll
  for (int k = 0; k < kSteps; ++k) {
#pragma unroll
    for (int c = 0; c < kQuads; ++c) {
      Add4(&sum[c], weights[k], LoadShared4Again(others + 4 * ((k * kQuads + c) * kLanes + part)));
    }
  }
}

// Sums dl along diagonals. All rows of a segment advance from key to key together. With each key a
// running sum moves to the next row, and so stays on its diagonal. A sum that leaves the last row
// of the segment is complete for the segment.
struct DiagonalSums {
  float* bins;  // of the segment; points to the entry for j - i = 0; null: not needed
  int most;     // T - 1
  int lanes;    // per row
  int segment;  // lanes per segment
  int row;      // index among the rows of the segment
  bool last;    // whether this is the last row of the segment
  bool writes;  // whether this lane writes for its row
  float sum = 0;

  __device__ __forceinline__ DiagonalSums(float* own_bins, int keys, const AttentionPlan& plan,
                                          int row_lanes)
      : bins(own_bins), most(keys - 1), lanes(row_lanes), segment(SegmentLanes(plan)) {
    const int lane = static_cast<int>(threadIdx.x) % segment;
    row = lane / lanes;
    last = row == segment / lanes - 1;
    writes = lane % lanes == 0;
  }

  // `distance`: j - i of this lane. All lanes must call it.
  __device__ __forceinline__ void Add(float gradient, int distance) {
    const float from_before = __shfl_up_sync(0xffffffffU, sum, lanes, segment);
    sum = gradient + (row == 0 ? 0 : from_before);
    if (last) Flush(distance);
  }
  // Call it after the last key, which has this `distance`.
  __device__ __forceinline__ void Finish(int distance) {
    if (!last) Flush(distance);
    __syncwarp();
    sum = 0;
  }
  __device__ __forceinline__ void Flush(int distance) const {
    // At larger distances there are no logits, and the sum is zero.
    if (writes && distance >= -most && distance <= most) bins[distance] += sum;
  }
};

// Adds the rows of a segment, one row per kLanes lanes, to sums[column], in a fixed order of the
// lanes. All lanes must call it.
template <int kQuads, int kLanes>
__device__ __forceinline__ void SumSegment(const float4 (&row)[kQuads], const AttentionPlan& plan,
                                           float* sums) {
  const int segment = SegmentLanes(plan);
  const int lane = static_cast<int>(threadIdx.x) % segment;
#pragma unroll
  for (int c = 0; c < kQuads; ++c) {
    float4 x = row[c];
#pragma unroll 1
    for (int lanes = kLanes; lanes < segment; lanes *= 2) {
      x.x += __shfl_xor_sync(0xffffffffU, x.x, lanes);
      x.y += __shfl_xor_sync(0xffffffffU, x.y, lanes);
      x.z += __shfl_xor_sync(0xffffffffU, x.z, lanes);
      x.w += __shfl_xor_sync(0xffffffffU, x.w, lanes);
    }
    if (lane < kLanes) {
      float* const to = sums + 4 * (c * kLanes + lane);
      to[0] += x.x;
      to[1] += x.y;
      to[2] += x.z;
      to[3] += x.w;
    }
  }
}

// The state that both halves need.
template <class Element, class Shape>
struct BackwardHead {
  const FusedAttention<Element>& p;
  const FusedAttentionGradients<Element>& g;
  const AttentionPlan& plan;
  const HeadPlace& place;
  const HeadLogits& logits;
  HeadView<const Element> query, key, value, out, out_rest, out_gradient;
  RowChange query_change, key_change, value_change, no_change;
  float* wide;        // the tile's rows of kWidth
  float* narrow;      // the tile's rows of kValueWidth
  float2* statistic;  // by query row
  float* bins;        // of the segment; points to the entry for j - i = 0
  float* biases;      // of the segment
  int part;

  __device__ __forceinline__ BackwardHead(const FusedAttention<Element>& problem,
                                          const FusedAttentionGradients<Element>& gradients,
                                          const AttentionPlan& with, const HeadPlace& at,
                                          const HeadLogits& of, const BackwardLayout& layout,
                                          float* shared)
      : p(problem),
        g(gradients),
        plan(with),
        place(at),
        logits(of),
        query(p.query, at, p.width, with.vectors),
        key(p.key, at, p.width, with.vectors),
        value(p.value, at, p.value_width, with.vectors),
        out({p.out.data, p.out.batch_stride, p.out.row_stride, p.out.head_stride}, at,
            p.value_width, with.vectors),
        out_rest({p.out_rest.data, p.out_rest.batch_stride, p.out_rest.row_stride,
                  p.out_rest.head_stride},
                 at, p.value_width, with.vectors),
        out_gradient(g.out, at, p.value_width, with.vectors),
        query_change(MemberBiases(p, at, p.query_bias), p.query_rotations, p.rotations_by_head, at,
                     static_cast<int>(p.heads), p.width, of.first_position, p.scale * kLog2E),
        key_change(MemberBiases(p, at, p.key_bias), p.key_rotations, p.rotations_by_head, at,
                   static_cast<int>(p.heads), p.width, 0, 1),
        value_change(MemberBiases(p, at, p.value_bias), nullptr, false, at,
                     static_cast<int>(p.heads), p.value_width, 0, 1),
        no_change(nullptr, nullptr, false, at, static_cast<int>(p.heads), p.value_width, 0, 1),
        wide(shared + at.local * layout.tile),
        narrow(wide + with.tile * Shape::kWidth),
        statistic(reinterpret_cast<float2*>(shared + layout.Statistics(with) +
                                            at.local * layout.statistic)),
        part(at.thread % Shape::kLanes) {
    const int segment = static_cast<int>(threadIdx.x) / SegmentLanes(with);
    bins = g.diagonal == nullptr ? nullptr
                                 : shared + layout.Bins(with) + segment * layout.bins + of.keys - 1;
    biases = shared + layout.Biases(with) + segment * layout.biases;
  }

  __device__ __forceinline__ int RowsAPass() const { return plan.threads / Shape::kLanes; }
  __device__ __forceinline__ int Column(int quad) const {
    return 4 * (quad * Shape::kLanes + part);
  }
};

template <class Element, class Shape>
struct BackwardQuery {
  float4 query[Shape::kQuads];
  float4 out_gradient[Shape::kValueQuads];
  float4 gradient[Shape::kQuads];
  int row;
  bool exists;
  int limit;
  float log_sum_exp;  // in units of log 2
  float mean;         // D

  __device__ __forceinline__ BackwardQuery(const BackwardHead<Element, Shape>& head, int at)
      : row(at), exists(at < head.logits.rows), limit(head.logits.Limit(at)) {
    const int from = exists ? row : head.logits.rows - 1;
#pragma unroll
    for (int c = 0; c < Shape::kQuads; ++c) {
      query[c] =
          head.query_change.Apply(head.query.Load(from, head.Column(c)), from, head.Column(c));
      gradient[c] = Zero4();
    }
    mean = 0;
#pragma unroll
    for (int c = 0; c < Shape::kValueQuads; ++c) {
      out_gradient[c] = head.out_gradient.Load(from, head.Column(c));
      mean = Dot4(out_gradient[c], head.out.Load(from, head.Column(c)), mean);
      if (head.out_rest.rows == nullptr) continue;
      mean = Dot4(out_gradient[c], head.out_rest.Load(from, head.Column(c)), mean);
    }
    mean = LanesSum<Shape::kLanes>(mean);
    log_sum_exp = head.p.log_sum_exp[head.place.index * head.p.rows + from] * kLog2E;
    if (exists && head.part == 0) head.statistic[row] = make_float2(log_sum_exp, mean);
  }

  // One step over the keys from `key` on, which are at row `at` of the tile. All lanes must call
  // it.
  __device__ __forceinline__ void Step(const BackwardHead<Element, Shape>& head, int key, int at,
                                       DiagonalSums* diagonal) {
    const HeadLogits& logits = head.logits;
    const float* const keys = head.wide + at * Shape::kWidth;
    float weights[kBackwardStep], slopes[kBackwardStep];
    Products<Shape::kQuads, Shape::kLanes>(query, keys, head.part, weights);
    Products<Shape::kValueQuads, Shape::kLanes>(out_gradient, head.narrow + at * Shape::kValueWidth,
                                                head.part, slopes);
    logits.AddTerms<kBackwardStep, false>(row, key, weights);
    if (logits.Drops()) {
#pragma unroll
      for (int k = 0; k < kBackwardStep; ++k) slopes[k] *= logits.Factor(row, key + k);
    }
#pragma unroll
    for (int k = 0; k < kBackwardStep; ++k) {
      slopes[k] = key + k < limit ? Exp2(weights[k] - log_sum_exp) * (slopes[k] - mean) : 0;
    }
    if (diagonal->bins != nullptr) {
#pragma unroll
      for (int k = 0; k < kBackwardStep; ++k) {
        diagonal->Add(slopes[k], key + k - row - logits.first_position);
      }
    }
    if (head.g.term != nullptr) StoreTerm(head, key, slopes);
    AddRows<Shape::kQuads, Shape::kLanes>(slopes, keys, head.part, gradient);
  }

  __device__ __forceinline__ void StoreTerm(const BackwardHead<Element, Shape>& head, int key,
                                            const float (&slopes)[kBackwardStep]) const {
    if (!exists || !head.place.exists || head.part != 0) return;
    float* const to = head.g.term + (head.place.index * head.p.rows + row) * head.p.keys;
#pragma unroll
    for (int k = 0; k < kBackwardStep; ++k) {
      if (key + k < head.logits.keys) to[key + k] = slopes[k];
    }
  }

  __device__ __forceinline__ void Finish(const BackwardHead<Element, Shape>& head) {
    const HeadView<Element> to(head.g.query, head.place, head.p.width, head.plan.vectors);
    const bool writes = exists && head.place.exists;
#pragma unroll
    for (int c = 0; c < Shape::kQuads; ++c) {
      const int column = head.Column(c);
      if (writes) {
        gradient[c] = head.query_change.Undo(Scaled4(gradient[c], head.p.scale), row, column);
        to.Store(row, column, gradient[c]);
      } else {
        gradient[c] = Zero4();
      }
    }
    if (head.g.query_bias != nullptr) {
      SumSegment<Shape::kQuads, Shape::kLanes>(gradient, head.plan, head.biases);
    }
  }
};

template <class Element, class Shape>
__device__ __forceinline__ void BackwardQueries(const BackwardHead<Element, Shape>& head) {
  const HeadLogits& logits = head.logits;
  const AttentionPlan& plan = head.plan;
  DiagonalSums diagonal(head.bins, logits.keys, plan, Shape::kLanes);
  const int own = head.place.thread / Shape::kLanes;
#pragma unroll 1
  for (int pass = 0; pass < logits.rows; pass += head.RowsAPass()) {
    BackwardQuery<Element, Shape> query(head, pass + own);
    const int limit = WarpMax(query.limit);
#pragma unroll 1
    for (int first = 0; first < logits.keys; first += plan.tile) {
      if (pass == 0 || plan.tile < logits.keys) {
        __syncthreads();
        FillTile<Shape::kWidth>(head.key, head.key_change, head.place, plan, first, logits.keys,
                                head.wide);
        FillTile<Shape::kValueWidth>(head.value, head.value_change, head.place, plan, first,
                                     logits.keys, head.narrow);
        __syncthreads();
      }
      const int count = min(plan.tile, limit - first);
#pragma unroll 1
      for (int k = 0; k < count; k += kBackwardStep) query.Step(head, first + k, k, &diagonal);
    }
    const int end = (limit + kBackwardStep - 1) / kBackwardStep * kBackwardStep;
    if (diagonal.bins != nullptr) {
      diagonal.Finish(end - 1 - query.row - logits.first_position);
    }
    if (head.g.term != nullptr) {
      const float nothing[kBackwardStep] = {};
#pragma unroll 1
      for (int key = end; key < logits.keys; key += kBackwardStep) {
        query.StoreTerm(head, key, nothing);
      }
    }
    query.Finish(head);
  }
}

template <class Element, class Shape>
struct BackwardKey {
  float4 key[Shape::kQuads];
  float4 value[Shape::kValueQuads];
  float4 key_gradient[Shape::kQuads];
  float4 value_gradient[Shape::kValueQuads];
  int row;
  bool visible;   // to any query
  int first_row;  // the first query row that sees it

  __device__ __forceinline__ BackwardKey(const BackwardHead<Element, Shape>& head, int at)
      : row(at), visible(at < head.logits.length), first_row(0) {
    if (head.logits.causal) first_row = max(0, row - head.logits.first_position);
    const int from = min(row, head.logits.keys - 1);
#pragma unroll
    for (int c = 0; c < Shape::kQuads; ++c) {
      key[c] = head.key_change.Apply(head.key.Load(from, head.Column(c)), from, head.Column(c));
      key_gradient[c] = Zero4();
    }
#pragma unroll
    for (int c = 0; c < Shape::kValueQuads; ++c) {
      value[c] =
          head.value_change.Apply(head.value.Load(from, head.Column(c)), from, head.Column(c));
      value_gradient[c] = Zero4();
    }
  }

  // One step over the query rows from `query` on, which are at row `at` of the tile. All lanes must
  // call it.
  __device__ __forceinline__ void Step(const BackwardHead<Element, Shape>& head, int query,
                                       int at) {
    const HeadLogits& logits = head.logits;
    const float* const queries = head.wide + at * Shape::kWidth;
    const float* const out_gradients = head.narrow + at * Shape::kValueWidth;
    float weights[kBackwardStep], slopes[kBackwardStep];
    Products<Shape::kQuads, Shape::kLanes>(key, queries, head.part, weights);
    Products<Shape::kValueQuads, Shape::kLanes>(value, out_gradients, head.part, slopes);
    logits.AddTerms<kBackwardStep, true>(query, row, weights);
#pragma unroll
    for (int k = 0; k < kBackwardStep; ++k) {
      const float2 statistic = head.statistic[query + k];
      const bool seen = visible && query + k >= first_row && query + k < logits.rows;
      const float weight = seen ? Exp2(weights[k] - statistic.x) : 0;
      const float factor = logits.Drops() ? logits.Factor(query + k, row) : 1;
      weights[k] = weight * factor;
      slopes[k] = weight * (slopes[k] * factor - statistic.y);
    }
    AddRows<Shape::kValueQuads, Shape::kLanes>(weights, out_gradients, head.part, value_gradient);
    AddRows<Shape::kQuads, Shape::kLanes>(slopes, queries, head.part, key_gradient);
  }

  __device__ __forceinline__ void Finish(const BackwardHead<Element, Shape>& head) {
    const HeadView<Element> to_key(head.g.key, head.place, head.p.width, head.plan.vectors);
    const HeadView<Element> to_value(head.g.value, head.place, head.p.value_width,
                                     head.plan.vectors);
    const bool writes = row < head.logits.keys && head.place.exists;
#pragma unroll
    for (int c = 0; c < Shape::kQuads; ++c) {
      const int column = head.Column(c);
      if (writes) {
        // The queries in shared memory include the factor scale log2(e); this removes log2(e).
        key_gradient[c] = head.key_change.Undo(Scaled4(key_gradient[c], kLn2), row, column);
        to_key.Store(row, column, key_gradient[c]);
      } else {
        key_gradient[c] = Zero4();
      }
    }
#pragma unroll
    for (int c = 0; c < Shape::kValueQuads; ++c) {
      if (writes) {
        to_value.Store(row, head.Column(c), value_gradient[c]);
      } else {
        value_gradient[c] = Zero4();
      }
    }
    if (head.g.key_bias != nullptr) {
      SumSegment<Shape::kQuads, Shape::kLanes>(key_gradient, head.plan,
                                               head.biases + Shape::kWidth);
    }
    if (head.g.value_bias != nullptr) {
      SumSegment<Shape::kValueQuads, Shape::kLanes>(value_gradient, head.plan,
                                                    head.biases + 2 * Shape::kWidth);
    }
  }
};

template <class Element, class Shape>
__device__ __forceinline__ void BackwardKeys(const BackwardHead<Element, Shape>& head) {
  const HeadLogits& logits = head.logits;
  const AttentionPlan& plan = head.plan;
  const int own = head.place.thread / Shape::kLanes;
#pragma unroll 1
  for (int pass = 0; pass < logits.keys; pass += head.RowsAPass()) {
    BackwardKey<Element, Shape> key(head, pass + own);
    const int start =
        WarpMin(key.visible ? key.first_row : logits.rows) / kBackwardStep * kBackwardStep;
#pragma unroll 1
    for (int first = 0; first < logits.rows; first += plan.tile) {
      if (pass == 0 || plan.tile < logits.rows) {
        __syncthreads();
        FillTile<Shape::kWidth>(head.query, head.query_change, head.place, plan, first, logits.rows,
                                head.wide);
        FillTile<Shape::kValueWidth>(head.out_gradient, head.no_change, head.place, plan, first,
                                     logits.rows, head.narrow);
        __syncthreads();
      }
      const int count = min(plan.tile, logits.rows - first);
#pragma unroll 1
      for (int k = max(0, start - first); k < count; k += kBackwardStep) {
        key.Step(head, first + k, k);
      }
    }
    key.Finish(head);
  }
}

// to[0 … count-1] = the sums over the head's segments, whose parts have a stride of `stride`.
__device__ __forceinline__ void StoreSums(const HeadPlace& place, const AttentionPlan& plan,
                                          const float* shared, int stride, int count, float* to) {
  if (to == nullptr || !place.exists) return;
  const int segments = plan.threads / SegmentLanes(plan);
  const float* const own = shared + place.local * segments * stride;
#pragma unroll 1
  for (int i = place.thread; i < count; i += plan.threads) {
    float sum = own[i];
    for (int s = 1; s < segments; ++s) sum += own[s * stride + i];
    to[i] = sum;
  }
}

template <class Element, int kWidth, int kValueWidth>
__global__ void __launch_bounds__(kAttentionThreads)
    AttentionBackwardKernel(PELAB_GRID_CONSTANT FusedAttention<Element> p,
                            PELAB_GRID_CONSTANT FusedAttentionGradients<Element> g,
                            PELAB_GRID_CONSTANT AttentionPlan plan) {
  using Shape = AttentionShape<kWidth, kValueWidth>;
  PELAB_DYNAMIC_SHARED(float, shared);
  const BackwardLayout layout(p, g, plan, kWidth, kValueWidth);
  const HeadPlace place(plan, p);
  const HeadLogits logits(p, place, plan,
                          shared + layout.Tables(plan) + place.local * layout.table);
  const BackwardHead<Element, Shape> head(p, g, plan, place, logits, layout, shared);
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x) + layout.Bins(plan); i < layout.Whole(plan);
       i += kAttentionThreads) {
    shared[i] = 0;
  }
#pragma unroll 1
  for (int i = logits.rows + place.thread; i < layout.statistic / 2; i += plan.threads) {
    head.statistic[i] = make_float2(0, 0);
  }
  BackwardQueries(head);
  BackwardKeys(head);
  __syncthreads();
  const float* const biases = shared + layout.Biases(plan);
  const int diagonals = 2 * logits.keys - 1, width = static_cast<int>(p.width),
            value_width = static_cast<int>(p.value_width);
  StoreSums(place, plan, shared + layout.Bins(plan), layout.bins, diagonals,
            g.diagonal == nullptr ? nullptr : g.diagonal + place.index * diagonals);
  StoreSums(place, plan, biases, layout.biases, width, BiasSums(p, g, place, g.query_bias, width));
  StoreSums(place, plan, biases + kWidth, layout.biases, width,
            BiasSums(p, g, place, g.key_bias, width));
  StoreSums(place, plan, biases + 2 * kWidth, layout.biases, value_width,
            BiasSums(p, g, place, g.value_bias, value_width));
}

}  // namespace pelab::trainer
