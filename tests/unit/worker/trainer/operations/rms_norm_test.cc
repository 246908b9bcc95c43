#include "worker/trainer/operations/rms_norm.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/random.h"
#include "tests/unit/worker/trainer/fused_fixture.h"

namespace pelab::trainer {
namespace {

constexpr double kEpsilon = 1e-6;

TEST(Operations, RmsNormsAgreeWithThePlainWay) {
  CounterRandom random(6, "test/shapes");
  for (int trial = 0; trial < 20; ++trial) {
    const std::int64_t parts = 1 + random.Below(2), members = random.Below(2) == 0 ? 1 : 3;
    const std::int64_t width = 16 * (1 + random.Below(12));
    std::vector<at::Tensor> values = {
        RandomTensor("x", {2 * members, 1 + random.Below(70), parts * width}) * 2 + 0.5};
    for (std::int64_t part = 0; part < parts; ++part) {
      const std::string name = "gamma" + std::to_string(part);
      values.push_back(members == 1 ? RandomTensor(name, {width})
                                    : RandomTensor(name, {members, width}));
    }
    const auto by = [](const auto& function) {
      return [&](const std::vector<at::Tensor>& leaves) {
        return function(leaves[0], {leaves.begin() + 1, leaves.end()}, kEpsilon);
      };
    };
    ExpectFusedAsPlain(values, by(RmsNorms), by(RmsNormsPlainly), "trial " + std::to_string(trial));
  }
}

TEST(Operations, RmsNormsOfPartsAreThoseOfEachPart) {
  const at::Tensor x = RandomTensor("x", {3, 5, 64}), first = RandomTensor("first", {32}),
                   second = RandomTensor("second", {32});
  const auto both = RmsNorms(x, {first, second}, kEpsilon);
  EXPECT_TRUE(both[0].equal(RmsNorms(x.narrow(2, 0, 32), {first}, kEpsilon)[0]));
  EXPECT_TRUE(both[1].equal(RmsNorms(x.narrow(2, 32, 32), {second}, kEpsilon)[0]));
}

// On a CPU the kernel needs a multiple of 16 channels.
TEST(Operations, RmsNormsOfAnyWidth) {
  const at::Tensor x = RandomTensor("x", {2, 3, 14}), gamma = RandomTensor("gamma", {7});
  const auto found = RmsNorms(x, {gamma, gamma}, kEpsilon);
  const at::Tensor wide = x.narrow(2, 7, 7).to(at::kDouble);
  const at::Tensor expected =
      wide / (wide.square().mean(-1, true) + kEpsilon).sqrt() * gamma.to(at::kDouble);
  EXPECT_LT(RelativeError(found[1], expected), kMostFloatError);
}

}  // namespace
}  // namespace pelab::trainer
