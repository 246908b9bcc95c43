#include "worker/trainer/model/dropout_mask.h"

#include <algorithm>
#include <cmath>

// One body, compiled for several instruction sets and chosen at load time; integers, so all give
// the same bits.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__)
#define PELAB_VECTOR_CLONES \
  __attribute__((target_clones("avx512f", "avx2", "default"), optimize("O3")))
#else
#define PELAB_VECTOR_CLONES
#endif

namespace pelab::trainer {
namespace {

PELAB_VECTOR_CLONES
void Fill(std::uint32_t key0, std::uint32_t key1, std::uint32_t threshold, float kept,
          std::uint32_t first, std::int64_t count, float* out) {
  for (std::int64_t i = 0; i < count; ++i) {
    std::uint32_t x = (first + static_cast<std::uint32_t>(i)) ^ key0;
    x ^= x >> 16;
    x *= 0x7feb352dU;
    x ^= x >> 15;
    x += key1;
    x *= 0x846ca68bU;
    x ^= x >> 16;
    x *= 0x9e3779b1U;
    x ^= x >> 15;
    out[i] = x < threshold ? 0.0f : kept;
  }
}

}  // namespace

void FillDropoutMask(std::uint64_t key, double p, std::int64_t first, std::int64_t count,
                     float* out) {
  const double scaled = std::min(std::floor(p * 4294967296.0), 4294967295.0);
  Fill(static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32),
       static_cast<std::uint32_t>(scaled), static_cast<float>(1 / (1 - p)),
       static_cast<std::uint32_t>(first), count, out);
}

}  // namespace pelab::trainer
