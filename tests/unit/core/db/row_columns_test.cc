#include "core/db/row_columns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pelab/v1/results.pb.h"

namespace pelab::db {
namespace {

TEST(RowColumns, NamesAreThoseOfTheFields) {
  EXPECT_EQ(ColumnsOf<v1::ArtifactRow>().sql(), "job_id, name, sha256, bytes");
  EXPECT_EQ(ColumnsOf<v1::ArtifactRow>().size(), 4);
  EXPECT_EQ(RowColumns(v1::ArtifactRow::descriptor(), {"sha256"}).sql(), "job_id, name, bytes");
  EXPECT_THAT(ColumnsOf<v1::AttemptRow>().sql(), testing::HasSubstr("error, started_at, ended_at,"))
      << "a time has its unit in the message only";
}

class RowColumnsTest : public ::testing::Test {
 protected:
  // The attempt that `values`, in the order of AttemptRow, are read as.
  v1::AttemptRow Read(const std::string& values) {
    RawStatement query(db_, "SELECT " + values);
    EXPECT_TRUE(query.Step());
    v1::AttemptRow row;
    bytes_ = ColumnsOf<v1::AttemptRow>().Read(query, row);
    return row;
  }

  SQLite::Database db_{":memory:", SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE};
  std::size_t bytes_ = 0;
};

TEST_F(RowColumnsTest, ReadsEveryKindOfValue) {
  const v1::AttemptRow row =
      Read("7, 12, 1, 'worker', 'cuda:0', 0, 'preempted', '', 1700000000000, NULL, '{}'");
  EXPECT_EQ(row.attempt_id(), 7);
  EXPECT_EQ(row.device(), "cuda:0");
  EXPECT_TRUE(row.has_start_epoch()) << "0 is a value";
  EXPECT_EQ(row.outcome(), v1::ATTEMPT_OUTCOME_PREEMPTED);
  EXPECT_TRUE(row.has_error()) << "an empty text is a value";
  EXPECT_EQ(row.started_at_ms(), 1'700'000'000'000);
  EXPECT_FALSE(row.has_ended_at_ms());
  EXPECT_EQ(bytes_, 14U);
}

TEST_F(RowColumnsTest, NullLeavesAFieldUnset) {
  const v1::AttemptRow row = Read("7, 12, 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL");
  EXPECT_EQ(row.worker(), "");
  EXPECT_FALSE(row.has_start_epoch());
  EXPECT_EQ(row.outcome(), v1::ATTEMPT_OUTCOME_UNSPECIFIED);
  EXPECT_FALSE(row.has_environment_json());
  EXPECT_EQ(bytes_, 0U);
}

// Otherwise nobody could read the list that contains the row.
TEST_F(RowColumnsTest, TextsBecomeUtf8) {
  const v1::AttemptRow row = Read(
      "7, 12, 1, 'wörker', CAST(x'63c3' AS TEXT), 0, 'failed', CAST(x'ff78c3a9' AS TEXT), 0, 0, "
      "''");
  EXPECT_EQ(row.worker(), "wörker");
  EXPECT_EQ(row.device(), "c?");
  EXPECT_EQ(row.error(), "?xé");
  v1::AttemptRow read;
  EXPECT_TRUE(read.ParseFromString(row.SerializeAsString()));
}

TEST_F(RowColumnsTest, AnUnknownStateIsUnspecified) {
  EXPECT_EQ(Read("7, 12, 1, '', '', 0, 'from the future', '', 0, 0, ''").outcome(),
            v1::ATTEMPT_OUTCOME_UNSPECIFIED);
}

}  // namespace
}  // namespace pelab::db
