#include "worker/trainer/model/attention_kernel.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#define PELAB_INLINE inline __attribute__((always_inline))

namespace pelab::trainer {
namespace {

constexpr std::int64_t kLanes = 16;
typedef float Floats __attribute__((vector_size(kLanes * 4)));
typedef std::int32_t Ints __attribute__((vector_size(kLanes * 4)));

// From and to memory that is aligned for float alone.
PELAB_INLINE Floats Load(const float* from) {
  Floats x;
  std::memcpy(&x, from, sizeof x);
  return x;
}
PELAB_INLINE void Store(const Floats& x, float* to) { std::memcpy(to, &x, sizeof x); }

std::int64_t Padded(std::int64_t n) { return (n + kLanes - 1) / kLanes * kLanes; }

// C (m, 16 n) = A (m, k) B (k, 16 n) for `kRows` rows and `kCols` vectors of columns, all sums in
// registers.
template <int kRows, int kCols>
PELAB_INLINE void Tile(std::int64_t k, const float* a, std::int64_t a_row, std::int64_t a_col,
                       const float* b, std::int64_t b_row, float* c, std::int64_t c_row) {
  Floats sum[kRows][kCols] = {};
  for (std::int64_t p = 0; p < k; ++p) {
    Floats right[kCols];
    for (int j = 0; j < kCols; ++j) right[j] = Load(b + p * b_row + j * kLanes);
    for (int i = 0; i < kRows; ++i) {
      const float left = a[i * a_row + p * a_col];
      for (int j = 0; j < kCols; ++j) sum[i][j] += left * right[j];
    }
  }
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kCols; ++j) Store(sum[i][j], c + i * c_row + j * kLanes);
  }
}

// C (m, n) = A (m, k) B (k, n), n a multiple of 16. A's element (i, p) is a[i a_row + p a_col].
PELAB_INLINE void Product(std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
                          std::int64_t a_row, std::int64_t a_col, const float* b,
                          std::int64_t b_row, float* c, std::int64_t c_row) {
  for (std::int64_t j = 0; j < n;) {
    const bool two = n - j >= 2 * kLanes;
    std::int64_t i = 0;
    for (; i + 4 <= m; i += 4) {
      const float* const left = a + i * a_row;
      float* const to = c + i * c_row + j;
      if (two) {
        Tile<4, 2>(k, left, a_row, a_col, b + j, b_row, to, c_row);
      } else {
        Tile<4, 1>(k, left, a_row, a_col, b + j, b_row, to, c_row);
      }
    }
    for (; i < m; ++i) {
      const float* const left = a + i * a_row;
      float* const to = c + i * c_row + j;
      if (two) {
        Tile<1, 2>(k, left, a_row, a_col, b + j, b_row, to, c_row);
      } else {
        Tile<1, 1>(k, left, a_row, a_col, b + j, b_row, to, c_row);
      }
    }
    j += two ? 2 * kLanes : kLanes;
  }
}

// e^x for x <= 0, to about 2 ulp: 2^n e^r with |r| <= ln(2)/2 and Cephes' polynomial for e^r. 0
// below -87.
PELAB_INLINE Floats Exp(Floats x) {
  const Ints tiny = x < -87.0f;
  x = tiny ? Floats{} - 87.0f : x;
  const Floats scaled = x * 1.44269504088896341f;
  const Ints whole =
      __builtin_convertvector(scaled - 0.5f, Ints);  // towards 0, and x <= 0: rounds to nearest
  const Floats n = __builtin_convertvector(whole, Floats);
  const Floats r = x - n * 0.693359375f - n * -2.12194440e-4f;
  Floats y = r * 1.9875691500e-4f + 1.3981999507e-3f;
  y = y * r + 8.3334519073e-3f;
  y = y * r + 4.1665795894e-2f;
  y = y * r + 1.6666665459e-1f;
  y = y * r + 5.0000001201e-1f;
  y = y * r * r + r + 1.0f;
  const Ints bits = (whole + 127) << 23;
  Floats power;
  std::memcpy(&power, &bits, sizeof power);
  return tiny ? Floats{} : y * power;
}

PELAB_INLINE float Sum(Floats x) {
  float sum = 0;
  for (int i = 0; i < kLanes; ++i) sum += x[i];
  return sum;
}

// What one head's pass needs; made once a call.
struct Buffers {
  explicit Buffers(const AttentionProblem& p)
      : keys(Padded(p.keys)),
        width(Padded(p.width)),
        value_width(Padded(p.value_width)),
        query(p.rows * width),
        rows_in(p.rows * value_width),
        key(p.keys * width),
        value(p.keys * value_width),
        transposed(std::max(p.width, p.value_width) * keys),
        weights(p.rows * keys),
        gradient(p.rows * keys),
        product(std::max(p.rows, p.keys) * std::max(width, value_width)) {}
  std::int64_t keys;         // T, padded
  std::int64_t width;        // w, padded
  std::int64_t value_width;  // d, padded
  std::vector<float> query, rows_in, key, value, transposed, weights, gradient, product;
};

PELAB_INLINE void Pack(const float* from, std::int64_t row_stride, std::int64_t rows,
                       std::int64_t width, float scale, float* to, std::int64_t to_stride) {
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t c = 0; c < width; ++c)
      to[i * to_stride + c] = from[i * row_stride + c] * scale;
    for (std::int64_t c = width; c < to_stride; ++c) to[i * to_stride + c] = 0;
  }
}

PELAB_INLINE void Unpack(const float* from, std::int64_t from_stride, std::int64_t rows,
                         std::int64_t width, float scale, float* to, std::int64_t row_stride) {
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t c = 0; c < width; ++c)
      to[i * row_stride + c] = from[i * from_stride + c] * scale;
  }
}

PELAB_INLINE void Transpose(const float* from, std::int64_t row_stride, std::int64_t rows,
                            std::int64_t width, float* to, std::int64_t to_stride) {
  for (std::int64_t c = 0; c < width; ++c) {
    for (std::int64_t i = 0; i < rows; ++i) to[c * to_stride + i] = from[i * row_stride + c];
    for (std::int64_t i = rows; i < to_stride; ++i) to[c * to_stride + i] = 0;
  }
}

PELAB_INLINE const float* RowOf(const LogitsView& view, std::int64_t batch, std::int64_t head,
                                std::int64_t row) {
  return view.data + batch * view.batch_stride + head * view.head_stride + row * view.row_stride;
}

PELAB_INLINE void AddTerm(const LogitsView& term, std::int64_t batch, std::int64_t head,
                          std::int64_t row, std::int64_t keys, float* logits) {
  const float* const from = RowOf(term, batch, head, row);
  if (term.key_stride == 1) {
    for (std::int64_t j = 0; j < keys; ++j) logits[j] += from[j];
  } else {
    for (std::int64_t j = 0; j < keys; ++j) logits[j] += from[j * term.key_stride];
  }
}

// In place over `padded` logits, of which those from `keys` on get no weight.
PELAB_INLINE void Softmax(std::int64_t keys, std::int64_t padded, float* row) {
  for (std::int64_t j = keys; j < padded; ++j) row[j] = -std::numeric_limits<float>::infinity();
  Floats most = Load(row);
  for (std::int64_t j = kLanes; j < padded; j += kLanes) {
    const Floats x = Load(row + j);
    most = x > most ? x : most;
  }
  float largest = most[0];
  for (int i = 1; i < kLanes; ++i) largest = most[i] > largest ? most[i] : largest;
  Floats sums = {};
  for (std::int64_t j = 0; j < padded; j += kLanes) {
    const Floats x = Exp(Load(row + j) - largest);
    Store(x, row + j);
    sums += x;
  }
  const float inverse = 1 / Sum(sums);
  for (std::int64_t j = 0; j < padded; j += kLanes) Store(Load(row + j) * inverse, row + j);
}

PELAB_INLINE void ForwardHead(const AttentionProblem& p, std::int64_t batch, std::int64_t head,
                              Buffers* b) {
  Pack(p.query.At(batch, head), p.query.row_stride, p.rows, p.width, p.scale, b->query.data(),
       b->width);
  Pack(p.value.At(batch, head), p.value.row_stride, p.keys, p.value_width, 1, b->value.data(),
       b->value_width);
  Transpose(p.key.At(batch, head), p.key.row_stride, p.keys, p.width, b->transposed.data(),
            b->keys);
  Product(p.rows, b->keys, p.width, b->query.data(), b->width, 1, b->transposed.data(), b->keys,
          b->weights.data(), b->keys);
  for (std::int64_t i = 0; i < p.rows; ++i) {
    float* const row = b->weights.data() + i * b->keys;
    if (p.term.data != nullptr) AddTerm(p.term, batch, head, i, p.keys, row);
    Softmax(p.keys, b->keys, row);
    if (p.saved.data != nullptr) {
      std::memcpy(const_cast<float*>(RowOf(p.saved, batch, head, i)), row,
                  static_cast<std::size_t>(p.keys) * sizeof(float));
    }
    if (p.mask.data != nullptr) {
      const float* const mask = RowOf(p.mask, batch, head, i);
      for (std::int64_t j = 0; j < p.keys; ++j) row[j] *= mask[j];
    }
  }
  Product(p.rows, b->value_width, p.keys, b->weights.data(), b->keys, 1, b->value.data(),
          b->value_width, b->product.data(), b->value_width);
  Unpack(b->product.data(), b->value_width, p.rows, p.value_width, 1, p.out.At(batch, head),
         p.out.row_stride);
}

// With P the softmax, M the mask, O = (P M) V:  dV = (P M)^T dO,  dP = (dO V^T) M,  dS = P (dP -
// rowsum(P dP)), dQ = scale dS K,  dK = scale dS^T Q.
PELAB_INLINE void BackwardHead(const AttentionProblem& p, std::int64_t batch, std::int64_t head,
                               Buffers* b) {
  Pack(p.query.At(batch, head), p.query.row_stride, p.rows, p.width, 1, b->query.data(), b->width);
  Pack(p.key.At(batch, head), p.key.row_stride, p.keys, p.width, 1, b->key.data(), b->width);
  Pack(p.out_gradient.At(batch, head), p.out_gradient.row_stride, p.rows, p.value_width, 1,
       b->rows_in.data(), b->value_width);
  Transpose(p.value.At(batch, head), p.value.row_stride, p.keys, p.value_width,
            b->transposed.data(), b->keys);
  Product(p.rows, b->keys, p.value_width, b->rows_in.data(), b->value_width, 1,
          b->transposed.data(), b->keys, b->gradient.data(), b->keys);
  for (std::int64_t i = 0; i < p.rows; ++i) {
    const float* const softmax = RowOf(p.saved, batch, head, i);
    float* const weights = b->weights.data() + i * b->keys;  // P M
    float* const gradient = b->gradient.data() + i * b->keys;
    std::memcpy(weights, softmax, static_cast<std::size_t>(p.keys) * sizeof(float));
    if (p.mask.data != nullptr) {
      const float* const mask = RowOf(p.mask, batch, head, i);
      for (std::int64_t j = 0; j < p.keys; ++j) {
        weights[j] *= mask[j];
        gradient[j] *= mask[j];
      }
    }
    float total = 0;
    for (std::int64_t j = 0; j < p.keys; ++j) total += softmax[j] * gradient[j];
    for (std::int64_t j = 0; j < p.keys; ++j) gradient[j] = softmax[j] * (gradient[j] - total);
    if (p.logits_gradient.data != nullptr) {
      std::memcpy(const_cast<float*>(RowOf(p.logits_gradient, batch, head, i)), gradient,
                  static_cast<std::size_t>(p.keys) * sizeof(float));
    }
  }
  float* const product = b->product.data();
  Product(p.rows, b->width, p.keys, b->gradient.data(), b->keys, 1, b->key.data(), b->width,
          product, b->width);
  Unpack(product, b->width, p.rows, p.width, p.scale, p.query_gradient.At(batch, head),
         p.query_gradient.row_stride);
  Product(p.keys, b->width, p.rows, b->gradient.data(), 1, b->keys, b->query.data(), b->width,
          product, b->width);
  Unpack(product, b->width, p.keys, p.width, p.scale, p.key_gradient.At(batch, head),
         p.key_gradient.row_stride);
  Product(p.keys, b->value_width, p.rows, b->weights.data(), 1, b->keys, b->rows_in.data(),
          b->value_width, product, b->value_width);
  Unpack(product, b->value_width, p.keys, p.value_width, 1, p.value_gradient.At(batch, head),
         p.value_gradient.row_stride);
}

PELAB_INLINE void Run(const AttentionProblem& p, std::int64_t begin, std::int64_t end,
                      bool forward) {
  Buffers buffers(p);
  for (std::int64_t at = begin; at < end; ++at) {
    if (forward) {
      ForwardHead(p, at / p.heads, at % p.heads, &buffers);
    } else {
      BackwardHead(p, at / p.heads, at % p.heads, &buffers);
    }
  }
}

// The same code, compiled for each instruction set.
void RunBaseline(const AttentionProblem& p, std::int64_t begin, std::int64_t end, bool forward) {
  Run(p, begin, end, forward);
}
#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("avx2,fma"))) void RunAvx2(const AttentionProblem& p, std::int64_t begin,
                                                 std::int64_t end, bool forward) {
  Run(p, begin, end, forward);
}
__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma"))) void RunAvx512(
    const AttentionProblem& p, std::int64_t begin, std::int64_t end, bool forward) {
  Run(p, begin, end, forward);
}
#endif

using RunFunction = void (*)(const AttentionProblem&, std::int64_t, std::int64_t, bool);

RunFunction ChooseRun() {
#if defined(__x86_64__) && defined(__GNUC__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    return RunAvx512;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return RunAvx2;
#endif
  return RunBaseline;
}

void Dispatch(const AttentionProblem& p, std::int64_t begin, std::int64_t end, bool forward) {
  static const RunFunction run = ChooseRun();
  run(p, begin, end, forward);
}

}  // namespace

void AttentionForward(const AttentionProblem& problem, std::int64_t begin, std::int64_t end) {
  Dispatch(problem, begin, end, true);
}

void AttentionBackward(const AttentionProblem& problem, std::int64_t begin, std::int64_t end) {
  Dispatch(problem, begin, end, false);
}

}  // namespace pelab::trainer
