#include "worker/trainer/parameters/initial_values.h"

#include <cstddef>
#include <stdexcept>

#include "core/base/random.h"

namespace pelab::trainer {
namespace {

// `given`: the elements of Init::OfSeed.
double Draw(const Init& init, const std::vector<double>& given, std::int64_t index,
            CounterRandom* random) {
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
    case Init::Kind::kOfSeed:
      return given[static_cast<std::size_t>(index)];
  }
  return 0;
}

}  // namespace

void DrawInitialValues(std::int64_t seed, const std::string& name, const Init& init,
                       std::int64_t count, double* out) {
  CounterRandom random(static_cast<std::uint64_t>(seed), "init/" + name);
  std::vector<double> given;
  if (init.kind == Init::Kind::kOfSeed) {
    given = init.of_seed(seed);
    if (static_cast<std::int64_t>(given.size()) < count) {
      throw std::logic_error(name + " has fewer initial values than elements");
    }
  }
  for (std::int64_t i = 0; i < count; ++i) {
    const double value = Draw(init, given, i, &random);
    out[i] = init.transform == nullptr ? value : init.transform(value);
  }
}

}  // namespace pelab::trainer
