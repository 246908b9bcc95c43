#include "worker/trainer/kernels/attention/attention_cpu.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "worker/trainer/kernels/attention/attention_cpu_tiles.h"
#include "worker/trainer/kernels/vectors.h"

namespace pelab::trainer {
namespace {

// The keys that the queries of one sequence see: row `row` sees those before End(row).
struct Visible {
  std::int64_t offset;  // the position of row 0; used for causal attention
  std::int64_t keys;    // number of keys before the padding
  bool causal;

  PELAB_INLINE std::int64_t End(std::int64_t row) const {
    return causal ? std::min(keys, row + offset + 1) : keys;
  }
  // The first row that sees `key`; `rows` if none does.
  PELAB_INLINE std::int64_t FirstRow(std::int64_t key, std::int64_t rows) const {
    if (key >= keys) return rows;
    return causal ? std::clamp<std::int64_t>(key - offset, 0, rows) : 0;
  }
};

PELAB_INLINE Visible VisibleTo(const FusedAttention<float>& p, std::int64_t batch) {
  return {p.keys - p.rows, p.lengths != nullptr ? p.lengths[batch] : p.keys, p.causal};
}

// The memory for one head, allocated once per call.
struct Buffers {
  explicit Buffers(const FusedAttention<float>& p)
      : keys(Padded(p.keys)),
        width(Padded(p.width)),
        value_width(Padded(p.value_width)),
        query(p.rows * width),
        rows_in(p.rows * value_width),
        key(keys * width),
        value(keys * value_width),
        key_columns(keys * width),
        value_columns(keys * value_width),
        weights(p.rows * keys),
        gradient(p.rows * keys),
        product(std::max(p.rows, p.keys) * std::max(width, value_width)) {}
  // Packs the vectors by distance that a query can see, and allocates memory for products with
  // them. Must be called before the first head, also if there are none.
  template <class Floats>
  PELAB_INLINE void PackDistances(const FusedAttention<float>& p) {
    if (p.key_distance == nullptr) return;
    reach = p.causal ? p.keys : p.keys + p.rows - 1;
    distances = Padded(reach);
    distance_rows.resize(distances * width);
    distance_columns.resize(distances * width);
    by_distance.resize(p.rows * distances);
    distance_product.resize(std::max(p.rows, distances) * width);
    for (std::int64_t r = 0; r < reach; ++r) {
      std::copy_n(p.key_distance + r * p.width, p.width, distance_rows.data() + r * width);
    }
    Transpose<Floats>(distance_rows.data(), distances, width, p.width, distance_columns.data());
  }
  // The start of row i's part of by_distance, which is the entry of key 0.
  float* ByDistance(const FusedAttention<float>& p, std::int64_t i) {
    return distances == 0 ? nullptr : by_distance.data() + i * distances + p.rows - 1 - i;
  }
  // Elements beyond the packed ones stay zero.
  std::int64_t keys;           // T, rounded up to whole vectors
  std::int64_t width;          // w, rounded up
  std::int64_t value_width;    // d, rounded up
  std::int64_t reach = 0;      // the number of key_distance entries that a query can see
  std::int64_t distances = 0;  // reach, rounded up; 0: there is no key_distance
  std::vector<float> query, rows_in, key, value, key_columns, value_columns, weights, gradient,
      product, distance_rows, distance_columns, by_distance, distance_product;
};

// The terms that are added to the scaled products of one row, and the end of the row.
struct RowTerms {
  RowTerms(const FusedAttention<float>& p, std::int64_t batch, std::int64_t head, std::int64_t row,
           std::int64_t keys_seen, const float* of_distances)
      : end(keys_seen),
        position(static_cast<float>(row + p.keys - p.rows)),
        by_distance(of_distances) {
    if (p.diagonal != nullptr) {
      diagonal = p.diagonal + (p.diagonal_by_head ? head * (2 * p.keys - 1) : 0) + p.rows - 1 - row;
    }
    if (p.slopes != nullptr) slope = p.slopes[head];
    if (p.term.data == nullptr) return;
    term = p.term.data + batch * p.term.batch_stride + head * p.term.head_stride +
           row * p.term.row_stride;
    term_stride = p.term.key_stride;
  }

  // The logits of keys j … j + 15, computed from their products; -inf from `end` on.
  template <class Floats>
  PELAB_INLINE Floats Logits(Floats products, std::int64_t j) const {
    const std::int64_t count = end - j;
    Floats x = products;
    if (by_distance != nullptr) x += LoadChannels<Floats>(by_distance + j, count);
    if (diagonal != nullptr) x += LoadChannels<Floats>(diagonal + j, count);
    if (slope != 0) {
      const Floats distance = Lanes<Floats>() + (static_cast<float>(j) - position);
      x -= slope * Larger(distance, -distance);
    }
    if (term != nullptr && term_stride == 1) x += LoadChannels<Floats>(term + j, count);
    if (term != nullptr && term_stride != 1) {
      float terms[kLanes] = {};
      for (std::int64_t i = 0; i < std::min(count, kLanes); ++i)
        terms[i] = term[(j + i) * term_stride];
      x += Load<Floats>(terms);
    }
    return Masked(x, count);
  }

  // x, with -inf from lane `count` on.
  template <class Floats>
  PELAB_INLINE static Floats Masked(Floats x, std::int64_t count) {
    if (count >= kLanes) return x;
    return Chosen(Lanes<Floats>() < static_cast<float>(count), x,
                  Floats{} - std::numeric_limits<float>::infinity());
  }

  std::int64_t end;
  float position;
  const float* by_distance;  // null: none
  float slope = 0;
  const float* diagonal = nullptr;
  const float* term = nullptr;
  std::int64_t term_stride = 0;
};

// Replaces `padded` products by their softmax. `log_sum`, if not null, gets the logarithm of the
// denominator.
template <class Floats>
PELAB_INLINE void Softmax(const RowTerms& terms, std::int64_t padded, float* row, float* log_sum) {
  Floats most = Floats{} - std::numeric_limits<float>::infinity();
  for (std::int64_t j = 0; j < padded; j += kLanes) {
    const Floats x = terms.Logits(Load<Floats>(row + j), j);
    Store(x, row + j);
    most = Larger(most, x);
  }
  const float largest = Largest(most);
  Floats sums = {};
  for (std::int64_t j = 0; j < padded; j += kLanes) {
    const Floats x = Exp(Load<Floats>(row + j) - largest);
    Store(x, row + j);
    sums += x;
  }
  const float sum = Sum(sums);
  const float inverse = 1 / sum;
  for (std::int64_t j = 0; j < padded; j += kLanes) Store(Load<Floats>(row + j) * inverse, row + j);
  if (log_sum != nullptr) *log_sum = largest + std::log(sum);
}

// The index of a row's first weight in the dropout stream.
PELAB_INLINE std::uint32_t DropoutIndex(const FusedAttention<float>& p, std::int64_t batch,
                                        std::int64_t head, std::int64_t row) {
  const std::int64_t rows = p.rows + p.dropout.skipped, keys = p.keys + p.dropout.skipped;
  return static_cast<std::uint32_t>(((batch * p.heads + head) * rows + row) * keys);
}

// The part of a bias (H, n) that belongs to a head.
PELAB_INLINE const float* BiasOf(const float* bias, std::int64_t head, std::int64_t width) {
  return bias != nullptr ? bias + head * width : nullptr;
}

template <class Floats>
PELAB_INLINE void PackHead(const FusedAttention<float>& p, std::int64_t batch, std::int64_t head,
                           Buffers* b) {
  Pack<Floats>(HeadOf(p.query, batch, head), p.query.row_stride, p.rows, p.width,
               BiasOf(p.query_bias, head, p.width),
               RotationsOf(p, p.query_rotations, head, p.keys - p.rows), p.scale, b->query.data(),
               b->width);
  Pack<Floats>(HeadOf(p.key, batch, head), p.key.row_stride, p.keys, p.width,
               BiasOf(p.key_bias, head, p.width), RotationsOf(p, p.key_rotations, head, 0), 1,
               b->key.data(), b->width);
  Pack<Floats>(HeadOf(p.value, batch, head), p.value.row_stride, p.keys, p.value_width,
               BiasOf(p.value_bias, head, p.value_width), {}, 1, b->value.data(), b->value_width);
  Transpose<Floats>(b->key.data(), b->keys, b->width, p.width, b->key_columns.data());
}

// (R, T) = rows (R, width) times columns (width, T), for the visible keys.
template <class Floats>
PELAB_INLINE void VisibleProduct(const FusedAttention<float>& p, const Visible& visible,
                                 std::int64_t width, const float* rows, std::int64_t row_stride,
                                 const float* columns, std::int64_t keys, float* to) {
  Product<Floats>(p.rows, keys, rows, row_stride, 1, columns, keys, to, keys,
                  [&](std::int64_t i, std::int64_t count) PELAB_INLINE_LAMBDA {
                    return Extent{visible.End(i + count - 1), 0, width};
                  });
}

// (R, width) = weights (R, T) times rows (T, width), summed over the visible keys.
template <class Floats>
PELAB_INLINE void OverKeys(const FusedAttention<float>& p, const Visible& visible,
                           std::int64_t width, const float* weights, std::int64_t keys,
                           const float* rows, float* to) {
  const std::int64_t stride = Padded(width);
  ForChannels<Floats>(width, [&]<class Vector>(std::int64_t n) PELAB_INLINE_LAMBDA {
    Product<Vector>(p.rows, n, weights, keys, 1, rows, stride, to, stride,
                    [&](std::int64_t i, std::int64_t count) PELAB_INLINE_LAMBDA {
                      return Extent{n, 0, visible.End(i + count - 1)};
                    });
  });
}

// (T, width) = weights^T (T, R) times rows (R, width), summed over the queries that see a key.
template <class Floats>
PELAB_INLINE void OverQueries(const FusedAttention<float>& p, const Visible& visible,
                              std::int64_t width, const float* weights, std::int64_t keys,
                              const float* rows, float* to) {
  const std::int64_t stride = Padded(width);
  ForChannels<Floats>(width, [&]<class Vector>(std::int64_t n) PELAB_INLINE_LAMBDA {
    Product<Vector>(p.keys, n, weights, 1, keys, rows, stride, to, stride,
                    [&](std::int64_t j, std::int64_t) PELAB_INLINE_LAMBDA {
                      return Extent{n, visible.FirstRow(j, p.rows), p.rows};
                    });
  });
}

// Products of the queries with the vectors by distance: (T', distances). Those of row i with keys
// 0, 1, … start at column T' - 1 - i.
template <class Floats>
PELAB_INLINE void DistanceProduct(const FusedAttention<float>& p, Buffers* b) {
  if (b->distances == 0) return;
  Product<Floats>(p.rows, b->distances, b->query.data(), b->width, 1, b->distance_columns.data(),
                  b->distances, b->by_distance.data(), b->distances,
                  [&](std::int64_t, std::int64_t) PELAB_INLINE_LAMBDA {
                    return Extent{b->distances, 0, p.width};
                  });
}

template <class Floats>
PELAB_INLINE void ForwardHead(const FusedAttention<float>& p, std::int64_t batch, std::int64_t head,
                              Buffers* b) {
  const Visible visible = VisibleTo(p, batch);
  const std::int64_t at = batch * p.heads + head;
  PackHead<Floats>(p, batch, head, b);
  VisibleProduct<Floats>(p, visible, p.width, b->query.data(), b->width, b->key_columns.data(),
                         b->keys, b->weights.data());
  DistanceProduct<Floats>(p, b);
  for (std::int64_t i = 0; i < p.rows; ++i) {
    float* const row = b->weights.data() + i * b->keys;
    const RowTerms terms(p, batch, head, i, visible.End(i), b->ByDistance(p, i));
    // The products of the whole tile of four rows were computed up to this key.
    const std::int64_t padded = Padded(visible.End(std::min(p.rows - 1, i | 3)));
    Softmax<Floats>(terms, padded, row,
                    p.log_sum_exp != nullptr ? p.log_sum_exp + at * p.rows + i : nullptr);
    if (p.dropout.threshold == 0) continue;
    const std::uint32_t first = DropoutIndex(p, batch, head, i);
    for (std::int64_t j = 0; j < padded; j += kLanes) {
      Store(Load<Floats>(row + j) *
                DropoutFactors<Floats>(p.dropout, first + static_cast<std::uint32_t>(j)),
            row + j);
    }
  }
  OverKeys<Floats>(p, visible, p.value_width, b->weights.data(), b->keys, b->value.data(),
                   b->product.data());
  Unpack<Floats>(b->product.data(), b->value_width, p.rows, p.value_width, {}, 1, nullptr,
                 HeadOf(p.out, batch, head), p.out.row_stride);
}

// Computes a row's softmax from its logits, and from it the gradients. `weights` becomes m P;
// `gradient`, which is dO v^T at the start, becomes dS.
template <class Floats>
PELAB_INLINE void BackwardRow(const FusedAttention<float>& p, std::int64_t batch, std::int64_t head,
                              std::int64_t row, std::int64_t end, std::int64_t padded,
                              const float* by_distance, float* weights, float* gradient) {
  const RowTerms terms(p, batch, head, row, end, by_distance);
  const float log_sum = p.log_sum_exp[(batch * p.heads + head) * p.rows + row];
  const std::uint32_t first = DropoutIndex(p, batch, head, row);
  const bool drops = p.dropout.threshold != 0;
  Floats totals = {};
  for (std::int64_t j = 0; j < padded; j += kLanes) {
    const Floats softmax = Exp(terms.Logits(Load<Floats>(weights + j), j) - log_sum);
    Floats change = Load<Floats>(gradient + j);
    if (drops) change *= DropoutFactors<Floats>(p.dropout, first + static_cast<std::uint32_t>(j));
    Store(softmax, weights + j);
    Store(change, gradient + j);
    totals += softmax * change;
  }
  const float total = Sum(totals);
  for (std::int64_t j = 0; j < padded; j += kLanes) {
    const Floats softmax = Load<Floats>(weights + j);
    Store(softmax * (Load<Floats>(gradient + j) - total), gradient + j);
    if (!drops) continue;
    Store(softmax * DropoutFactors<Floats>(p.dropout, first + static_cast<std::uint32_t>(j)),
          weights + j);
  }
}

// Stores the gradients of what is added to the logits: the general term and the diagonal.
PELAB_INLINE void KeepLogitGradients(const FusedAttention<float>& p,
                                     const FusedAttentionGradients<float>& to, std::int64_t at,
                                     std::int64_t row, std::int64_t end, const float* gradient) {
  if (to.diagonal != nullptr) {
    float* const bins = to.diagonal + at * (2 * p.keys - 1) + p.rows - 1 - row;
    for (std::int64_t j = 0; j < end; ++j) bins[j] += gradient[j];
  }
  if (to.term == nullptr) return;
  float* const term = to.term + (at * p.rows + row) * p.keys;
  std::memcpy(term, gradient, static_cast<std::size_t>(end) * sizeof(float));
  std::fill(term + end, term + p.keys, 0.0f);
}

// Computes two gradients from dS. It adds the gradient of the vectors by distance to the sums of
// the sequence, and the gradient of the queries through these vectors to `product`. It first moves
// the gradients of the logits to the columns of DistanceProduct.
template <class Floats>
PELAB_INLINE void BackwardDistances(const FusedAttention<float>& p,
                                    const FusedAttentionGradients<float>& to,
                                    const Visible& visible, std::int64_t batch, std::int64_t head,
                                    Buffers* b) {
  if (b->distances == 0) return;
  std::fill(b->by_distance.begin(), b->by_distance.end(), 0.0f);
  for (std::int64_t i = 0; i < p.rows; ++i) {
    std::copy_n(b->gradient.data() + i * b->keys, visible.End(i), b->ByDistance(p, i));
  }
  // Row i has only zeros before column T' - 1 - i.
  const auto first = [&](std::int64_t i, std::int64_t count) PELAB_INLINE_LAMBDA {
    return std::max<std::int64_t>(0, p.rows - i - count);
  };
  float* const made = b->distance_product.data();
  Product<Floats>(p.rows, b->width, b->by_distance.data(), b->distances, 1, b->distance_rows.data(),
                  b->width, made, b->width,
                  [&](std::int64_t i, std::int64_t count) PELAB_INLINE_LAMBDA {
                    return Extent{b->width, first(i, count), b->reach};
                  });
  for (std::int64_t i = 0; i < p.rows * b->width; ++i) b->product[i] += made[i];
  if (to.key_distance == nullptr) return;
  const std::int64_t entries = 2 * p.keys - 1;
  float* const sums = to.key_distance + batch * entries * p.width;
  if (head == 0) std::fill_n(sums, entries * p.width, 0.0f);
  Product<Floats>(b->reach, b->width, b->by_distance.data(), 1, b->distances, b->query.data(),
                  b->width, made, b->width,
                  [&](std::int64_t r, std::int64_t count) PELAB_INLINE_LAMBDA {
                    return Extent{b->width, first(r, count), p.rows};
                  });
  for (std::int64_t r = 0; r < b->reach; ++r) {
    for (std::int64_t c = 0; c < p.width; ++c) sums[r * p.width + c] += made[r * b->width + c];
  }
}

// With P the softmax, m the dropout mask and O = (m P) V:
//   dV = (m P)^T dO,  dP = m dO V^T,  dS = P (dP - rowsum(P dP)),
//   dQ = scale dS K,  dK = scale dS^T Q.
template <class Floats>
PELAB_INLINE void BackwardHead(const FusedAttention<float>& p,
                               const FusedAttentionGradients<float>& to, std::int64_t batch,
                               std::int64_t head, Buffers* b) {
  const Visible visible = VisibleTo(p, batch);
  const std::int64_t at = batch * p.heads + head;
  PackHead<Floats>(p, batch, head, b);
  Pack<Floats>(HeadOf(to.out, batch, head), to.out.row_stride, p.rows, p.value_width, nullptr, {},
               1, b->rows_in.data(), b->value_width);
  Transpose<Floats>(b->value.data(), b->keys, b->value_width, p.value_width,
                    b->value_columns.data());
  VisibleProduct<Floats>(p, visible, p.width, b->query.data(), b->width, b->key_columns.data(),
                         b->keys, b->weights.data());
  VisibleProduct<Floats>(p, visible, p.value_width, b->rows_in.data(), b->value_width,
                         b->value_columns.data(), b->keys, b->gradient.data());
  DistanceProduct<Floats>(p, b);
  if (to.diagonal != nullptr) {
    std::fill_n(to.diagonal + at * (2 * p.keys - 1), 2 * p.keys - 1, 0.0f);
  }
  for (std::int64_t i = 0; i < p.rows; ++i) {
    float* const gradient = b->gradient.data() + i * b->keys;
    const std::int64_t padded = Padded(visible.End(std::min(p.rows - 1, i | 3)));
    BackwardRow<Floats>(p, batch, head, i, visible.End(i), padded, b->ByDistance(p, i),
                        b->weights.data() + i * b->keys, gradient);
    KeepLogitGradients(p, to, at, i, visible.End(i), gradient);
  }
  const auto sums = [&](float* partial, std::int64_t width) PELAB_INLINE_LAMBDA {
    return partial != nullptr ? partial + at * width : nullptr;
  };
  float* const product = b->product.data();
  OverKeys<Floats>(p, visible, p.width, b->gradient.data(), b->keys, b->key.data(), product);
  BackwardDistances<Floats>(p, to, visible, batch, head, b);
  Unpack<Floats>(product, b->width, p.rows, p.width,
                 RotationsOf(p, p.query_rotations, head, p.keys - p.rows), p.scale,
                 sums(to.query_bias, p.width), HeadOf(to.query, batch, head), to.query.row_stride);
  OverQueries<Floats>(p, visible, p.width, b->gradient.data(), b->keys, b->query.data(), product);
  Unpack<Floats>(product, b->width, p.keys, p.width, RotationsOf(p, p.key_rotations, head, 0), 1,
                 sums(to.key_bias, p.width), HeadOf(to.key, batch, head), to.key.row_stride);
  OverQueries<Floats>(p, visible, p.value_width, b->weights.data(), b->keys, b->rows_in.data(),
                      product);
  Unpack<Floats>(product, b->value_width, p.keys, p.value_width, {}, 1,
                 sums(to.value_bias, p.value_width), HeadOf(to.value, batch, head),
                 to.value.row_stride);
}

template <class Element>
void Skip(std::int64_t sequences, HeadRows<Element>* rows) {
  Advance(rows->data, sequences * rows->batch_stride);
}

// The part of one member, as a problem of one member.
FusedAttention<float> MemberOf(FusedAttention<float> p, std::int64_t member) {
  p.batch /= p.members.count;
  const std::int64_t before = member * p.batch;
  Skip(before, &p.query);
  Skip(before, &p.key);
  Skip(before, &p.value);
  Skip(before, &p.out);
  for (const float** biases : {&p.query_bias, &p.key_bias, &p.value_bias}) {
    Advance(*biases, member * p.members.parameter_stride);
  }
  Advance(p.lengths, before);
  if (p.diagonal_by_member) {
    Advance(p.diagonal, member * (p.diagonal_by_head ? p.heads : 1) * (2 * p.keys - 1));
  }
  Advance(p.key_distance, member * (2 * p.keys - 1) * p.width);
  Advance(p.term.data, before * p.term.batch_stride);
  Advance(p.log_sum_exp, before * p.heads * p.rows);
  p.dropout = WithKeys(pelab::trainer::MemberOf(p.dropout, member));
  p.members = {};
  return p;
}

FusedAttentionGradients<float> MemberOf(FusedAttentionGradients<float> g,
                                        const FusedAttention<float>& of, std::int64_t member) {
  const std::int64_t before = member * (of.batch / of.members.count);
  Skip(before, &g.out);
  Skip(before, &g.query);
  Skip(before, &g.key);
  Skip(before, &g.value);
  Advance(g.query_bias, before * of.heads * of.width);
  Advance(g.key_bias, before * of.heads * of.width);
  Advance(g.value_bias, before * of.heads * of.value_width);
  Advance(g.diagonal, before * of.heads * (2 * of.keys - 1));
  Advance(g.key_distance, before * (2 * of.keys - 1) * of.width);
  Advance(g.term, before * of.heads * of.rows * of.keys);
  return g;
}

// Splits heads [begin, end) by member and calls run(member, begin, end) with heads counted within
// the member.
template <typename Run>
void ByMember(const FusedAttention<float>& p, std::int64_t begin, std::int64_t end,
              const Run& run) {
  const std::int64_t each = p.batch / p.members.count * p.heads;
  while (begin < end) {
    const std::int64_t member = begin / each;
    const std::int64_t stop = std::min(end, (member + 1) * each);
    run(member, begin - member * each, stop - member * each);
    begin = stop;
  }
}

}  // namespace

void AttentionForward(const FusedAttention<float>& problem, std::int64_t begin, std::int64_t end) {
  ByMember(problem, begin, end, [&](std::int64_t member, std::int64_t from, std::int64_t to) {
    const FusedAttention<float> own = MemberOf(problem, member);
    RunWidest([&]<class Floats>() PELAB_INLINE_LAMBDA {
      Buffers buffers(own);
      buffers.PackDistances<Floats>(own);
      for (std::int64_t at = from; at < to; ++at) {
        ForwardHead<Floats>(own, at / own.heads, at % own.heads, &buffers);
      }
    });
  });
}

void AttentionBackward(const FusedAttention<float>& problem,
                       const FusedAttentionGradients<float>& gradients, std::int64_t begin,
                       std::int64_t end) {
  ByMember(problem, begin, end, [&](std::int64_t member, std::int64_t from, std::int64_t to) {
    const FusedAttention<float> own = MemberOf(problem, member);
    const FusedAttentionGradients<float> into = MemberOf(gradients, problem, member);
    RunWidest([&]<class Floats>() PELAB_INLINE_LAMBDA {
      Buffers buffers(own);
      buffers.PackDistances<Floats>(own);
      for (std::int64_t at = from; at < to; ++at) {
        BackwardHead<Floats>(own, into, at / own.heads, at % own.heads, &buffers);
      }
    });
  });
}

}  // namespace pelab::trainer
