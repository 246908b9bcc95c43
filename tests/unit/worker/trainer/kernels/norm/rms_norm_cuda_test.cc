// The kernels of rms_norm.h against its formulas in double; gradients against finite differences of
// these.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

#include "tests/support/cuda_emulation.h"
#include "tests/unit/worker/trainer/kernels/norm/rms_norm_fixture.h"
#include "worker/trainer/kernels/norm/rms_norm_kernels.cuh"

namespace pelab::trainer::rms_norm_cuda_test {
namespace {

using Options = RmsNormOptions;

// `aligned`: 16-byte accesses fit the problem.
template <class Element>
void RunBoth(const RmsNorm<Element>& p, const RmsNormGradients<Element>& g, bool aligned) {
  const auto members = static_cast<unsigned>(p.members.count);
  const auto blocks =
      static_cast<unsigned>((p.rows + kNormWarps * kForwardRows - 1) / (kNormWarps * kForwardRows));
  WithPieces<Element>(p.width, aligned, [&](auto vector, auto chunks) {
    cuda_emulation::Launch({blocks, 1, members}, {kNormThreads}, 0,
                           RmsNormForwardKernel<Element, vector.value, chunks.value>, p);
    cuda_emulation::Launch({static_cast<unsigned>(NormBlocks(p.rows)), 1, members}, {kNormThreads},
                           kNormWarps * p.width * sizeof(float),
                           RmsNormBackwardKernel<Element, vector.value, chunks.value>, p, g);
  });
}

template <class Element>
void ExpectBothWays(const Options& options) {
  RmsNormCase<Element> made(options);
  RunBoth(made.p, made.g, Aligned(made.p));
  made.ExpectForward();
  made.ExpectBackward();
}

template <class Element>
class RmsNormCuda : public testing::Test {};
using Elements = testing::Types<float, Bf16>;
TYPED_TEST_SUITE(RmsNormCuda, Elements);

TYPED_TEST(RmsNormCuda, EveryWidth) {
  for (const std::int64_t width : {2, 4, 7, 8, 33, 100, 256, 512, 519, 1024}) {
    SCOPED_TRACE(width);
    ExpectBothWays<TypeParam>({.rows = 5, .width = width});
  }
}

TYPED_TEST(RmsNormCuda, PartsOfWiderRows) {
  for (const std::int64_t width : {16, 128, 100, 7}) {
    for (const bool second : {false, true}) {
      SCOPED_TRACE(testing::Message() << width << (second ? ", second" : ", first"));
      ExpectBothWays<TypeParam>(
          {.width = width, .before = second ? width : 0, .after = second ? 0 : width});
    }
  }
}

TYPED_TEST(RmsNormCuda, ManyRows) {
  ExpectBothWays<TypeParam>({.rows = 2 * kNormBlockRows + 3, .width = 24});
}

TYPED_TEST(RmsNormCuda, MembersAreAsAlone) {
  for (const std::int64_t width : {7, 32, 100}) {
    for (const std::int64_t beyond : {4, 1}) {
      SCOPED_TRACE(testing::Message() << width << ", " << beyond << " further");
      RmsNormMembers<TypeParam> made({.rows = kNormBlockRows + 3, .width = width, .after = width},
                                     beyond);
      const bool aligned = Aligned(made.p);
      EXPECT_EQ(aligned, beyond % 4 == 0 && width % (16 / sizeof(TypeParam)) == 0);
      RunBoth(made.p, made.g, aligned);
      for (const auto& one : made.alone) RunBoth(one->p, one->g, aligned);
      made.ExpectAsAlone();
    }
  }
}

// Otherwise a failed run would continue as if nothing had happened.
TEST(RmsNormCuda, NotANumberStaysSo) {
  RmsNormCase<float> made({.rows = 1, .width = 4});
  made.x[2] = std::numeric_limits<float>::quiet_NaN();
  RunBoth(made.p, made.g, true);
  for (const float n : made.normed) EXPECT_TRUE(std::isnan(n));
}

}  // namespace
}  // namespace pelab::trainer::rms_norm_cuda_test
