// The CPU functions of rotary_heads.h against its formulas in double.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/worker/trainer/kernels/rotary/rotary_heads_fixture.h"

namespace pelab::trainer {
namespace {

TEST(RotaryHeadsCpu, EveryShapeInRangesOfRows) {
  for (const RotaryHeadsOptions& options : RotaryHeadsShapes()) {
    SCOPED_TRACE(options);
    RotaryHeadsCase<float> made(options);
    for (std::int64_t row = 0; row < made.rows; row += 3) {
      RotaryHeadsForward(made.p, row, std::min(made.rows, row + 3));
      RotaryHeadsBackward(made.p, made.g, row, std::min(made.rows, row + 3));
    }
    made.ExpectForward();
    made.ExpectBackward();
  }
}

}  // namespace
}  // namespace pelab::trainer
