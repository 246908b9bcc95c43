#include "worker/trainer/operations/rotary_heads.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/random.h"
#include "tests/unit/worker/trainer/fused_fixture.h"

namespace pelab::trainer {
namespace {

// Rotations and scalings, (length, 1, width / 2).
at::Tensor RandomRotations(std::int64_t length, std::int64_t width) {
  return at::view_as_complex(RandomTensor("rotations", {length, 1, width / 2, 2}));
}

TEST(Operations, RotaryHeadsAgreeWithThePlainWay) {
  CounterRandom random(7, "test/shapes");
  for (int trial = 0; trial < 20; ++trial) {
    const std::int64_t heads = 1 + random.Below(5), width = 1 + random.Below(20);
    const std::int64_t rotary = 2 * (1 + random.Below(9)), length = 1 + random.Below(40);
    const std::int64_t own = random.Below(2) == 0 ? 1 : heads, examples = 1 + random.Below(4);
    const at::Tensor rotations = RandomRotations(length, rotary);
    // Content may be the first part of a product that has values as well.
    const bool wider = random.Below(2) == 0;
    const std::vector<at::Tensor> values = {
        RandomTensor("content", {examples, length, (wider ? 2 : 1) * heads * width}),
        RandomTensor("rotary", {examples, length, own * rotary})};
    const auto by = [&](const auto& function) {
      return [&](const std::vector<at::Tensor>& leaves) -> std::vector<at::Tensor> {
        const auto type =
            leaves[0].scalar_type() == at::kDouble ? at::kComplexDouble : at::kComplexFloat;
        const at::Tensor content = leaves[0].narrow(2, 0, heads * width);
        const at::Tensor out = function(content, leaves[1], rotations.to(type), heads);
        EXPECT_EQ(out.sizes(), at::IntArrayRef({examples, length, heads, width + rotary}));
        return {out};
      };
    };
    ExpectFusedAsPlain(values, by(RotaryHeadsOf), by(RotaryHeadsPlainly),
                       "trial " + std::to_string(trial));
  }
}

TEST(Operations, RotaryHeadsOfNoExamples) {
  const at::Tensor out = RotaryHeadsOf(RandomTensor("content", {0, 5, 32}),
                                       RandomTensor("rotary", {0, 5, 8}), RandomRotations(5, 8), 4);
  EXPECT_EQ(out.sizes(), at::IntArrayRef({0, 5, 4, 16}));
}

}  // namespace
}  // namespace pelab::trainer
