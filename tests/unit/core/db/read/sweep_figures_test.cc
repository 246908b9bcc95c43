#include "core/db/read/sweep_figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/core/db/database_fixture.h"

namespace pelab::db {
namespace {

using ::testing::ElementsAre;

class SweepFiguresTest : public ::testing::Test {
 protected:
  // Adds a sweep with so many queued jobs and twice as many succeeded ones.
  std::int64_t Add(const std::string& name, const std::string& state, int queued) {
    const std::int64_t sweep = file_.AddSweep(name, state);
    file_.Execute(absl::StrCat("INSERT INTO sweep_counts (sweep_id, queued, succeeded) VALUES (",
                               sweep, ", ", queued, ", ", 2 * queued,
                               ") ON CONFLICT DO UPDATE SET queued = excluded.queued, ",
                               "succeeded = excluded.succeeded"));
    return sweep;
  }
  SweepFigures Read(std::size_t most_live) {
    const auto reader = SweepFiguresReader::Open(file_.path());
    EXPECT_THAT(reader, IsOk());
    const auto figures = (*reader)->Read(most_live);
    EXPECT_THAT(figures, IsOk());
    return *figures;
  }

  DatabaseForTest file_;
};

TEST_F(SweepFiguresTest, AnEmptyDatabaseHasEveryStateAtZero) {
  const SweepFigures figures = Read(200);
  EXPECT_EQ(figures.jobs.size(), 6u);
  EXPECT_EQ(figures.jobs.at("running"), 0);
  EXPECT_EQ(figures.sweeps.size(), 4u);
  EXPECT_EQ(figures.sweeps.at("active"), 0);
  EXPECT_TRUE(figures.live.empty());
}

TEST_F(SweepFiguresTest, CountsAllSweepsButDeletedOnes) {
  Add("a", "active", 1);
  Add("b", "active", 10);
  Add("c", "finished", 100);
  const std::int64_t deleted = Add("d", "cancelled", 1000);
  file_.Execute(absl::StrCat("UPDATE sweeps SET deleted = 1 WHERE sweep_id = ", deleted));
  const SweepFigures figures = Read(0);
  EXPECT_EQ(figures.jobs.at("queued"), 111);
  EXPECT_EQ(figures.jobs.at("succeeded"), 222);
  EXPECT_EQ(figures.sweeps.at("active"), 2);
  EXPECT_EQ(figures.sweeps.at("finished"), 1);
  EXPECT_EQ(figures.sweeps.at("cancelled"), 0);
  EXPECT_TRUE(figures.live.empty());
}

TEST_F(SweepFiguresTest, OfMoreLiveSweepsThanAskedForTheNewestAreThere) {
  for (int i = 1; i <= 5; ++i) Add(absl::StrCat("s", i), i == 4 ? "finished" : "active", i);
  std::vector<std::string> names;
  const SweepFigures figures = Read(3);
  for (const SweepFigures::Live& sweep : figures.live) names.push_back(sweep.name);
  EXPECT_THAT(names, ElementsAre("s5", "s3", "s2"));
  EXPECT_EQ(figures.live[0].jobs.at("queued"), 5);
  EXPECT_EQ(figures.jobs.at("queued"), 15);
}

TEST_F(SweepFiguresTest, AMissingFileIsAnError) {
  EXPECT_THAT(SweepFiguresReader::Open(file_.directory() + "/none.db").status(),
              StatusIs(absl::StatusCode::kNotFound, ::testing::HasSubstr("none.db")));
}

}  // namespace
}  // namespace pelab::db
