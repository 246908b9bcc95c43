#include "core/db/raw_statement.h"

#include <gtest/gtest.h>

#include "core/base/strings.h"

namespace pelab::db {
namespace {

class RawStatementTest : public ::testing::Test {
 protected:
  RawStatementTest() {
    connection_->db().exec("CREATE TABLE t (a); INSERT INTO t VALUES (1), (2), (3)");
  }

  static std::unique_ptr<SQLite::Database> Memory() {
    return std::make_unique<SQLite::Database>(":memory:",
                                              SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
  }

  std::size_t kept() { return connection_->statements().size(); }

  std::unique_ptr<Connection> connection_ = Connection::Over(Memory());
};

TEST_F(RawStatementTest, IsKeptForTheNextQueryOfItsText) {
  const std::string sql = "SELECT a FROM t WHERE a >= ? ORDER BY a";
  for (const std::int64_t first : {1, 2, 3}) {
    RawStatement query(*connection_, sql);
    EXPECT_EQ(kept(), 0U) << "it is in use";
    query.Bind(1, first);
    ASSERT_TRUE(query.Step());
    EXPECT_EQ(query.Integer(0), first) << "from its begin, although the one before was not ended";
  }
  EXPECT_EQ(kept(), 1U);
}

TEST_F(RawStatementTest, ValuesOfTheQueryBeforeAreForgotten) {
  const std::string sql = "SELECT ? IS NULL";
  RawStatement(*connection_, sql).Bind(1, std::string("secret"));
  RawStatement query(*connection_, sql);
  ASSERT_TRUE(query.Step());
  EXPECT_EQ(query.Integer(0), 1);
}

TEST_F(RawStatementTest, TheSameQueryInsideItselfIsAnotherOne) {
  const std::string sql = "SELECT a FROM t ORDER BY a";
  RawStatement outer(*connection_, sql);
  ASSERT_TRUE(outer.Step());
  {
    RawStatement inner(*connection_, sql);
    ASSERT_TRUE(inner.Step());
    ASSERT_TRUE(inner.Step());
  }
  ASSERT_TRUE(outer.Step());
  EXPECT_EQ(outer.Integer(0), 2);
}

TEST_F(RawStatementTest, ItReadsWhatHasChangedMeanwhile) {
  const std::string sql = "SELECT * FROM t ORDER BY a LIMIT 1";
  ASSERT_TRUE(RawStatement(*connection_, sql).Step());
  connection_->db().exec("ALTER TABLE t ADD COLUMN b DEFAULT 'new'; UPDATE t SET a = a + 10");
  RawStatement query(*connection_, sql);
  ASSERT_TRUE(query.Step());
  EXPECT_EQ(query.Integer(0), 11);
  EXPECT_EQ(query.Text(1), "new");
}

TEST_F(RawStatementTest, ItCanBeUsedAgainAfterAnError) {
  const std::string sql = "SELECT abs(?)";
  {
    RawStatement query(*connection_, sql);
    query.Bind(1, std::int64_t{INT64_MIN});
    EXPECT_THROW(query.Step(), SQLite::Exception) << "it has no absolute value";
  }
  RawStatement query(*connection_, sql);
  query.Bind(1, std::int64_t{-4});
  ASSERT_TRUE(query.Step());
  EXPECT_EQ(query.Integer(0), 4);
}

TEST_F(RawStatementTest, OnlySoManyAreKeptAndNoneOfALongText) {
  for (std::size_t i = 0; i < StatementCache::kMost + 10; ++i) {
    RawStatement query(*connection_, Concat("SELECT ", i));
  }
  EXPECT_EQ(kept(), StatementCache::kMost);
  EXPECT_EQ(connection_->statements().Take("SELECT 0"), nullptr) << "the oldest went first";
  RawStatement(*connection_,
               Concat("SELECT '", std::string(StatementCache::kLongestText, 'x'), "'"));
  EXPECT_EQ(kept(), StatementCache::kMost);
}

TEST_F(RawStatementTest, BytesAreNotMended) {
  RawStatement query(*connection_, "SELECT x'ff00', NULL");
  ASSERT_TRUE(query.Step());
  EXPECT_EQ(query.Bytes(0), std::string("\xff\0", 2));
  EXPECT_EQ(query.Bytes(1), "");
}

}  // namespace
}  // namespace pelab::db
