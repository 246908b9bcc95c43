// The kernels of rotary_heads.h against its formulas in double.
#include <gtest/gtest.h>

#include "tests/support/cuda_emulation.h"
#include "tests/unit/worker/trainer/kernels/rotary/rotary_heads_fixture.h"
#include "worker/trainer/kernels/rotary/rotary_heads_kernels.cuh"

namespace pelab::trainer::rotary_heads_cuda_test {
namespace {

template <class Element>
void RunBoth(const RotaryHeads<Element>& p, const RotaryHeadsGradients<Element>& g) {
  const auto blocks = static_cast<unsigned>((p.rows + kRotaryWarps - 1) / kRotaryWarps);
  WithRotaryVector<Element>(Aligned(p), [&](auto vector) {
    cuda_emulation::Launch({blocks}, {kRotaryThreads}, 0,
                           RotaryHeadsForwardKernel<Element, vector.value>, p);
  });
  WithRotaryVector<Element>(Aligned(p, g), [&](auto vector) {
    cuda_emulation::Launch({blocks}, {kRotaryThreads}, 0,
                           RotaryHeadsBackwardKernel<Element, vector.value>, p, g);
  });
}

template <class Element>
class RotaryHeadsCuda : public testing::Test {};
using Elements = testing::Types<float, Bf16>;
TYPED_TEST_SUITE(RotaryHeadsCuda, Elements);

TYPED_TEST(RotaryHeadsCuda, EveryShape) {
  for (const RotaryHeadsOptions& options : RotaryHeadsShapes()) {
    SCOPED_TRACE(options);
    RotaryHeadsCase<TypeParam> made(options);
    RunBoth(made.p, made.g);
    made.ExpectForward();
    made.ExpectBackward();
  }
}

TYPED_TEST(RotaryHeadsCuda, VectorsWhereTheyAreAligned) {
  RotaryHeadsCase<TypeParam> made({.shared = true, .after = 24});
  EXPECT_TRUE(Aligned(made.p));
  EXPECT_TRUE(Aligned(made.p, made.g));
  EXPECT_FALSE(Aligned(RotaryHeadsCase<TypeParam>({.after = 1}).p));
  EXPECT_FALSE(Aligned(RotaryHeadsCase<TypeParam>({.width = 7}).p));
  EXPECT_FALSE(Aligned(RotaryHeadsCase<TypeParam>({.rotary_width = 6}).p));
  ++made.p.rotary;
  EXPECT_FALSE(Aligned(made.p));
}

}  // namespace
}  // namespace pelab::trainer::rotary_heads_cuda_test
