// The records that a daemon leaves for the next one, damaged.
#include "worker/agent/work_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace pelab::agent {
namespace {

using ::testing::HasSubstr;

class WorkDirTest : public testing::Test {
 protected:
  WorkDirTest() : work_dir_(*WorkDir::Open(dir_ / "w")) {
    assignment_.set_attempt_id(7);
    assignment_.set_token(0xabc);
    assignment_.set_job_id(3);
    assignment_.set_key(std::string(64, 'a'));
    assignment_.set_max_start_epoch(5);
    assignment_.set_spec_json("{}");
  }
  std::string PathOf(const std::string& record) const {
    return absl::StrCat(work_dir_.AttemptDir(7), "/", record);
  }
  // Replaces `what` in a record.
  void Damage(const std::string& record, const std::string& what, const std::string& by) {
    std::string text = *ReadFile(PathOf(record), 1 << 20);
    const std::size_t at = text.find(what);
    ASSERT_NE(at, std::string::npos) << text;
    ASSERT_THAT(WriteFileAtomically(PathOf(record), text.replace(at, what.size(), by)), IsOk());
  }

  const TempDir dir_;
  WorkDir work_dir_;
  v1::Assignment assignment_;
};

TEST_F(WorkDirTest, AnAssignmentReadsBack) {
  ASSERT_THAT(work_dir_.SaveAssignment(assignment_), IsOk());
  const auto read = work_dir_.LoadAssignment(7);
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(read->token(), 0xabcU);
  EXPECT_EQ(read->job_id(), 3);
  EXPECT_EQ(read->max_start_epoch(), 5);
}

TEST_F(WorkDirTest, NumbersThatAreNoIntegersAreDamage) {
  for (const char* number : {"5.5", "5e0", "4294967301", "18446744073709551615", "\"5\"", "null"}) {
    ASSERT_THAT(work_dir_.SaveAssignment(assignment_), IsOk());
    Damage("attempt.json", "\"max_start_epoch\": 5", absl::StrCat("\"max_start_epoch\": ", number));
    EXPECT_THAT(work_dir_.LoadAssignment(7),
                StatusIs(absl::StatusCode::kDataLoss,
                         HasSubstr("attempt.json is damaged: \"max_start_epoch\" is ")))
        << number;
  }
}

TEST_F(WorkDirTest, AnUploadWithoutASizeIsNone) {
  ASSERT_THAT(work_dir_.SaveAssignment(assignment_), IsOk());
  ASSERT_THAT(work_dir_.SaveUpload(7, {.weights_file = "w", .bytes = 12}), IsOk());
  EXPECT_EQ(work_dir_.LoadUpload(7)->bytes, 12U);
  for (const char* bytes : {"-12", "12.5", "1e300"}) {
    ASSERT_THAT(work_dir_.SaveUpload(7, {.weights_file = "w", .bytes = 12}), IsOk());
    Damage("upload.json", "\"bytes\":12", absl::StrCat("\"bytes\":", bytes));
    EXPECT_FALSE(work_dir_.LoadUpload(7).has_value()) << bytes;
  }
}

}  // namespace
}  // namespace pelab::agent
