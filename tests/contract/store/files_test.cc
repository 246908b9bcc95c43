// Files that documents name: how long a row keeps one, and which assignments name it.
#include "core/db/check/check.h"
#include "tests/contract/store/store_fixture.h"

namespace pelab::store {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const std::string kFile = std::string(64, 'f');
const std::string kOther = std::string(64, 'e');

NewCell OwnCell() {
  NewCell cell = Cell(0, "k0");
  cell.spec_json = absl::StrCat(R"({"pe":{"file":")", kFile,
                                R"(","name":"own","version":1},"task":{"name":"distance"}})");
  cell.requirement.pe = "own";
  cell.requirement.pe_version = 1;
  return cell;
}

class StoredFilesTest : public StoreTest {
 protected:
  std::vector<std::string> Unneeded(std::int64_t now) {
    return Do<Unused>(FindUnused{{kFile, kOther}, now}).sha256s;
  }
  void Record(const std::string& sha256, std::int64_t now) {
    Do<Nothing>(RecordFile{sha256, kOtherBytes, now});
  }
  std::string Rows() { return Text("SELECT substr(sha256, 1, 1), stored_at FROM files"); }
};
INSTANTIATE_TEST_SUITE_P(Backends, StoredFilesTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "File" : "Memory"; });

TEST_P(StoredFilesTest, IsKeptForADay) {
  Record(kFile, 1000);
  EXPECT_THAT(Unneeded(1000 + kFileTime - 1), ElementsAre(kOther));
  EXPECT_EQ(Rows(), "f 1000");
  Record(kFile, 2000);
  EXPECT_THAT(Unneeded(1000 + kFileTime), ElementsAre(kOther)) << "its day began anew";
  EXPECT_THAT(Unneeded(2000 + kFileTime), ElementsAre(kFile, kOther));
  EXPECT_EQ(Rows(), "") << "the row goes with the file";
}

TEST_P(StoredFilesTest, IsKeptWhileAConfigurationNamesIt) {
  Record(kFile, 1000);
  Record(kOther, 1000);
  Submit("a", {OwnCell()});
  EXPECT_THAT(Unneeded(1000 + kFileTime), ElementsAre(kOther));
  EXPECT_EQ(Rows(), "f 1000");
}

TEST_P(StoredFilesTest, IsRenewedIfItIsKnown) {
  Record(kFile, 1000);
  EXPECT_THAT(Do<FilesRenewed>(RenewFiles{{kFile, kOther}, 3000}).unknown, ElementsAre(kOther));
  EXPECT_EQ(Rows(), "f 3000");
}

TEST_P(StoredFilesTest, AssignmentsNameIt) {
  Record(kFile, 1000);
  Submit("a", {OwnCell()});
  const Attempt attempt = Assign(1);
  ASSERT_EQ(assignment_.files.size(), 1u);
  EXPECT_EQ(assignment_.files[0].sha256, kFile);
  EXPECT_EQ(assignment_.files[0].bytes, kOtherBytes);
  if (!GetParam()) return;
  Open();  // after a restart
  ASSERT_TRUE(store_
                  ->Recover([](const auto&) {}, [](const auto&) {},
                            [&](const OpenAttempt& open) {
                              EXPECT_EQ(open.assignment.attempt_id, attempt.id);
                              EXPECT_EQ(open.assignment.files.size(), 1u);
                            },
                            [](const auto&) {})
                  .ok());
}

TEST_P(StoredFilesTest, AssignmentsNameALostOneWithoutItsSize) {
  Submit("a", {OwnCell()});
  Assign(1);
  ASSERT_EQ(assignment_.files.size(), 1u);
  EXPECT_EQ(assignment_.files[0].bytes, 0u);
}

TEST_P(StoredFilesTest, OtherJobsNeedNone) {
  Submit("a", {Cell(0, "k0")});
  Assign(1);
  EXPECT_THAT(assignment_.files, IsEmpty());
}

TEST_P(StoredFilesTest, AnAnalysisOnKeptWeightsNeedsItToo) {
  Record(kFile, 1000);
  Submit("a", {OwnCell()}, false, 0, "[]");
  TrainWhole();
  Submit("b", {OwnCell()});
  ASSERT_EQ(JobState(1), "queued");
  Assign(1, 90);
  EXPECT_TRUE(assignment_.weights.has_value());
  EXPECT_EQ(assignment_.files.size(), 1u);
}

}  // namespace
}  // namespace pelab::store
