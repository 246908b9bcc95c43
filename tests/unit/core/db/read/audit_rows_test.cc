#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/db/read/reader.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/core/db/database_fixture.h"

namespace pelab::db {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class AuditRowsTest : public ::testing::Test {
 protected:
  AuditRowsTest() {
    Add(1, 1000, "alice");
    Add(2, 2000, "");
    Add(3, 3000, "bob");
    Add(4, 1500, "alice");  // the clock was set back
    Add(5, 4000, "alice");
  }
  void Add(int id, std::int64_t at_ms, const std::string& principal) {
    file_.Execute("INSERT INTO audit VALUES (" + std::to_string(id) + ", " + std::to_string(at_ms) +
                  ", '" + principal + "', 'ipv4:10.0.0.7:51234', 'Sweeps/Cancel', 'sweep 3', " +
                  "'PERMISSION_DENIED', 7, 'trace', 'hash" + std::to_string(id) + "')");
  }
  static v1::ListAuditRequest Since(std::int64_t since_ms, const std::string& principal = "") {
    v1::ListAuditRequest request;
    request.set_since_ms(since_ms);
    request.set_principal(principal);
    return request;
  }
  // The numbers of all rows, read in pages of two rows.
  std::vector<std::int64_t> Ids(v1::ListAuditRequest request) {
    const auto reader = Reader::Open(file_.path());
    std::vector<std::int64_t> ids;
    request.mutable_page()->set_limit(2);
    for (;;) {
      const auto page = (*reader)->ListAudit(request);
      EXPECT_THAT(page, IsOk());
      if (!page.ok()) return ids;
      EXPECT_LE(page->rows_size(), 2);
      for (const v1::AuditRow& row : page->rows()) ids.push_back(row.audit_id());
      if (page->next().empty()) return ids;
      request.mutable_page()->set_after(page->next());
    }
  }

  DatabaseForTest file_;
};

TEST_F(AuditRowsTest, EveryColumnIsRead) {
  const auto page = (*Reader::Open(file_.path()))->ListAudit(Since(4000));
  ASSERT_THAT(page, IsOk());
  ASSERT_EQ(page->rows_size(), 1);
  EXPECT_EQ(page->rows(0).ShortDebugString(),
            R"(audit_id: 5 at_ms: 4000 principal: "alice" peer: "ipv4:10.0.0.7:51234" )"
            R"(method: "Sweeps/Cancel" target: "sweep 3" outcome: "PERMISSION_DENIED" count: 7 )"
            R"(trace_id: "trace" sha256: "hash5")");
}

TEST_F(AuditRowsTest, PagesKeepTheOrderInWhichTheyWereWritten) {
  EXPECT_THAT(Ids(Since(0)), ElementsAre(1, 2, 3, 4, 5));
}

TEST_F(AuditRowsTest, SinceLeavesOutEveryEarlierRow) {
  EXPECT_THAT(Ids(Since(1000)), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(Ids(Since(1001)), ElementsAre(2, 3, 4, 5));
  EXPECT_THAT(Ids(Since(2000)), ElementsAre(2, 3, 5));
  EXPECT_THAT(Ids(Since(4001)), IsEmpty());
}

TEST_F(AuditRowsTest, OfOnePrincipal) {
  EXPECT_THAT(Ids(Since(0, "alice")), ElementsAre(1, 4, 5));
  EXPECT_THAT(Ids(Since(1200, "alice")), ElementsAre(4, 5));
  EXPECT_THAT(Ids(Since(0, "carol")), IsEmpty());
}

TEST_F(AuditRowsTest, APositionIsANumber) {
  v1::ListAuditRequest request;
  request.mutable_page()->set_after("2; DROP");
  EXPECT_THAT((*Reader::Open(file_.path()))->ListAudit(request),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("page position \"2; DROP\"")));
  request.mutable_page()->set_after("");
  request.mutable_page()->set_limit(-1);
  EXPECT_THAT((*Reader::Open(file_.path()))->ListAudit(request),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("page limit -1")));
}

}  // namespace
}  // namespace pelab::db
