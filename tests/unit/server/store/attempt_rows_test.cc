// Tests which rows are known, which ones a batch has used, and how many are kept.
#include "server/store/attempt_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/limits.h"

namespace pelab::store {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::IsNull;
using ::testing::NotNull;

std::vector<std::int64_t> TakeUsed(AttemptRows& rows) {
  std::vector<std::int64_t> used;
  rows.ForEachUsed([&](const AttemptRow& row) { used.push_back(row.attempt_id); });
  return used;
}

TEST(AttemptRowsTest, KeepsWhatABatchHasChangedForTheNextOnes) {
  AttemptRows rows;
  EXPECT_THAT(rows.Use(7), IsNull());
  rows.Add({.attempt_id = 7}).epochs_done = 3;
  rows.Add({.attempt_id = 8});
  EXPECT_THAT(TakeUsed(rows), ElementsAre(7, 8));
  EXPECT_THAT(TakeUsed(rows), IsEmpty());
  ASSERT_THAT(rows.Use(7), NotNull());
  EXPECT_EQ(rows.Use(7)->epochs_done, 3);
  EXPECT_THAT(TakeUsed(rows), ElementsAre(7, 7));
}

TEST(AttemptRowsTest, ForgetsOneOrAll) {
  AttemptRows rows;
  rows.Add({.attempt_id = 7});
  rows.Add({.attempt_id = 8});
  rows.Forget(7);
  EXPECT_THAT(rows.Use(7), IsNull());
  EXPECT_THAT(TakeUsed(rows), ElementsAre(8));
  rows.ForgetAll();
  EXPECT_THAT(rows.Use(8), IsNull());
  EXPECT_THAT(TakeUsed(rows), IsEmpty());
}

TEST(AttemptRowsTest, KeepsOnlySoMany) {
  AttemptRows rows;
  const auto most = static_cast<std::int64_t>(limits::kAttemptsInMemory);
  for (std::int64_t id = 1; id <= most; ++id) rows.Add({.attempt_id = id});
  rows.Bound();
  EXPECT_THAT(rows.Use(most), NotNull());
  rows.Add({.attempt_id = most + 1});
  rows.Bound();
  EXPECT_THAT(rows.Use(most), IsNull());
}

}  // namespace
}  // namespace pelab::store
