#include "worker/trainer/parameters/initial_values.h"

#include <cstddef>

#include "core/base/random.h"

namespace pelab::trainer {
namespace {

double Draw(const Init& init, std::int64_t index, CounterRandom* random) {
  switch (init.kind) {
    case Init::Kind::kConstant:
      return init.scale;
    case Init::Kind::kUniform:
      return (2 * random->Uniform() - 1) * init.scale;
    case Init::Kind::kNormal:
      return random->Normal() * init.scale;
    case Init::Kind::kBetween:
      return init.low + random->Uniform() * (init.high - init.low);
    case Init::Kind::kEach:
      return init.values[static_cast<std::size_t>(index) % init.values.size()];
  }
  return 0;
}

}  // namespace

void DrawInitialValues(std::int64_t seed, const std::string& name, const Init& init,
                       std::int64_t count, double* out) {
  CounterRandom random(static_cast<std::uint64_t>(seed), "init/" + name);
  for (std::int64_t i = 0; i < count; ++i) {
    const double value = Draw(init, i, &random);
    out[i] = init.transform == nullptr ? value : init.transform(value);
  }
}

}  // namespace pelab::trainer
