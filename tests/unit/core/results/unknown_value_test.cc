#include "core/results/unknown_value.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/unit/core/results/jobs_fixture.h"

namespace pelab::results {
namespace {

// The sentence about `field` = `value` in jobs of two encodings, each with the seeds below
// `seeds`.
std::string TextOf(const std::string& field, const std::string& value, int seeds = 2,
                   const std::string& whose = " of the sweep", const std::string& op = "=") {
  std::vector<v1::JobRow> rows;
  for (const char* pe : {"rope", "nope"}) {
    for (int seed = 0; seed < seeds; ++seed) {
      rows.push_back(MakeJob(static_cast<std::int64_t>(rows.size()) + 1, pe, seed, kDone, 900));
    }
  }
  const JobList jobs(std::move(rows));
  return UnknownValueSentence(jobs, FieldTable(jobs), {field, value, op}, whose);
}

TEST(UnknownValueTest, NamesTheValueAndThoseThatAreThere) {
  EXPECT_EQ(TextOf("pe", "rop"),
            "no job of the sweep has pe = rop; did you mean rope? there: nope, rope");
  EXPECT_EQ(TextOf("pe", "alibi", 2, ""), "no job has pe = alibi; there: nope, rope");
  EXPECT_EQ(TextOf("train.lr", "0.01"), "no job of the sweep has train.lr = 0.01; there: 0.001");
}

TEST(UnknownValueTest, ListsNumbersBySizeAndAtMostEight) {
  EXPECT_EQ(TextOf("seed", "20", 11),
            "no job of the sweep has seed = 20; there: 0, 1, 2, 3, 4, 5, 6, 7 and 3 more");
}

TEST(UnknownValueTest, NamesTheRangeThatIsThere) {
  EXPECT_EQ(TextOf("seed", "20", 11, "", ">="), "no job has seed >= 20; there: 0 to 10");
  EXPECT_EQ(TextOf("train.lr", "1", 2, "", ">"), "no job has train.lr > 1; there: 0.001");
}

TEST(UnknownValueTest, IsEmptyForAFieldThatNoJobHas) { EXPECT_EQ(TextOf("pe.base", "500"), ""); }

TEST(UnknownValueTest, NamesTheFieldThatHasWhatWasAsked) {
  EXPECT_EQ(TextOf("state", "diverged"),
            "no job of the sweep has state = diverged; there: succeeded; jobs that are shown as "
            "diverged meet diverged=true");
}

}  // namespace
}  // namespace pelab::results
