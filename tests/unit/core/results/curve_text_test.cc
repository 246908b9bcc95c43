// Curve rows are written as text directly, without intermediate values: every digit must be the
// same.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>

#include "core/render/json.h"
#include "core/results/rows.h"

namespace pelab::results {
namespace {

using render::Json;

class CurveTextTest : public ::testing::Test {
 protected:
  double Real() {
    constexpr double kSpecial[] = {0.0,
                                   -0.0,
                                   1.0,
                                   -3.0,
                                   1e15,
                                   1e16,
                                   1e17,
                                   1e-4,
                                   1e-5,
                                   5e-324,
                                   std::numeric_limits<double>::max(),
                                   std::numeric_limits<double>::infinity(),
                                   -std::numeric_limits<double>::infinity(),
                                   std::numeric_limits<double>::quiet_NaN()};
    switch (random_() % 4) {
      case 0:
        return kSpecial[random_() % std::size(kSpecial)];
      case 1:  // an accuracy
        return static_cast<double>(random_() % 1000) / static_cast<double>(1 + random_() % 1000);
      case 2:  // a loss
        return std::uniform_real_distribution<double>(0, 8)(random_);
      default:
        return std::bit_cast<double>(random_());
    }
  }
  std::int64_t Integer() {
    constexpr std::int64_t kSpecial[] = {0, 1, -1, std::numeric_limits<std::int64_t>::max(),
                                         std::numeric_limits<std::int64_t>::min()};
    return random_() % 4 == 0 ? kSpecial[random_() % std::size(kSpecial)]
                              : static_cast<std::int64_t>(random_() >> random_() % 64);
  }
  v1::CurveRow Row() {
    v1::CurveRow row;
    row.set_job_id(Integer());
    row.set_epoch(static_cast<int>(Integer()));
    row.set_train_loss(Real());
    row.set_train_accuracy(Real());
    row.set_test_loss(Real());
    row.set_test_accuracy(Real());
    row.set_learning_rate(Real());
    row.set_seconds(Real());
    row.set_train_correct(Integer());
    row.set_train_total(Integer());
    row.set_test_correct(Integer());
    row.set_test_total(Integer());
    if (random_() % 2 == 0) return row;
    row.set_train_eval_accuracy(Real());
    row.set_train_eval_correct(Integer());
    row.set_train_eval_total(Integer());
    return row;
  }

  std::mt19937_64 random_{11};  // NOLINT: the same rows every time
};

TEST_F(CurveTextTest, CsvIsThatOfTheValues) {
  const std::string names = render::ToCsv(ColumnsOf<v1::CurveRow>(), Json::array());
  for (int i = 0; i < 20'000; ++i) {
    const v1::CurveRow row = Row();
    std::string text = names;
    AppendCsv(row, text);
    ASSERT_EQ(text, render::ToCsv(ColumnsOf<v1::CurveRow>(), Json::array({ToJson(row)})));
  }
}

TEST_F(CurveTextTest, JsonIsThatOfTheValues) {
  for (int i = 0; i < 20'000; ++i) {
    const v1::CurveRow row = Row();
    std::string text = "{\n  \"curves\": [\n";
    AppendJson(row, text);
    text += "\n  ]\n}\n";
    ASSERT_EQ(text, render::ToJson({{"curves", Json::array({ToJson(row)})}}));
  }
}

}  // namespace
}  // namespace pelab::results
