#include "worker/trainer/kernels/dropout/dropout_mask.h"

#include <algorithm>
#include <cmath>

#include "worker/trainer/kernels/vectors.h"

namespace pelab::trainer {

DropoutStream MakeDropoutStream(std::uint64_t key, double p, std::int64_t first) {
  const double threshold = std::min(std::floor(p * 4294967296.0), 4294967295.0);
  DropoutStream stream;
  stream.key0 = static_cast<std::uint32_t>(key);
  stream.key1 = static_cast<std::uint32_t>(key >> 32);
  stream.threshold = static_cast<std::uint32_t>(threshold);
  stream.kept = static_cast<float>(1 / (1 - p));
  stream.first = static_cast<std::uint32_t>(first);
  return stream;
}

void FillDropoutMask(const DropoutStream& stream, std::int64_t first, std::int64_t count,
                     float* out) {
  RunWidest([&]<class Floats>() PELAB_INLINE_LAMBDA {
    std::int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes) {
      Store(DropoutFactors<Floats>(stream, static_cast<std::uint32_t>(first + i)), out + i);
    }
    for (; i < count; ++i) out[i] = DropoutFactor(stream, static_cast<std::uint32_t>(first + i));
  });
}

}  // namespace pelab::trainer
