// What an import reads of a database that no coordinator has written as it is.
#include "core/db/import/import_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>

#include "tests/support/status_matchers.h"
#include "tests/unit/core/db/database_fixture.h"

namespace pelab::db {
namespace {

// As `pelab import` pages: each page begins after the last ordinal of the one before.
TEST(ImportReader, PagesOfCellsEndAtTheLargestOrdinal) {
  DatabaseForTest database;
  const std::int64_t sweep = database.AddSweep("s", "finished");
  database.AddToSweep(sweep, 0, database.AddJob({.key = "a"}));
  database.AddToSweep(sweep, 1, database.AddJob({.key = "b"}));
  database.Execute("UPDATE sweep_jobs SET ordinal = 9223372036854775807 WHERE ordinal = 1");
  const auto reader = ImportReader::Open(database.path());
  ASSERT_THAT(reader, IsOk());
  std::uint64_t from = 0;
  for (const std::uint64_t ordinal : {std::uint64_t{0}, std::uint64_t{INT64_MAX}}) {
    const auto page = (*reader)->Cells(sweep, from, 1);
    ASSERT_THAT(page, IsOk());
    ASSERT_EQ(page->ordinals_size(), 1);
    EXPECT_EQ(page->ordinals(0), ordinal);
    from = ordinal + 1;
  }
  const auto rest = (*reader)->Cells(sweep, from, 1);
  ASSERT_THAT(rest, IsOk());
  EXPECT_EQ(rest->ordinals_size(), 0) << "otherwise an import would never end";
}

}  // namespace
}  // namespace pelab::db
