// `pelab db check`: a sound file has no problems, and each broken promise is named.
#include "core/db/check/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/core/db/database_fixture.h"

namespace pelab::db {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class MaintenanceTest : public ::testing::Test {
 protected:
  MaintenanceTest() {
    const auto job = file_.AddJob({.key = "a1", .epochs = 2});
    const auto attempt = file_.AddAttempt(job, 1, 0, "succeeded");
    for (int epoch = 0; epoch < 2; ++epoch) file_.AddEpoch(attempt, epoch, 240 + 10 * epoch);
    file_.Summarize(job, 2, 250, 250, 300);
    file_.AddHeadAblation(job, attempt, 2, 3, 250, 300);
  }
  // The promises that are broken after `damage`.
  std::vector<std::string> Broken(const std::string& damage) {
    if (!damage.empty()) file_.Execute(damage);
    const auto checks = CheckDatabase(file_.path());
    EXPECT_TRUE(checks.ok()) << checks.status();
    std::vector<std::string> broken;
    for (const Check& check : checks.value_or(std::vector<Check>())) {
      if (!check.problems.empty()) broken.push_back(check.name);
    }
    return broken;
  }

  DatabaseForTest file_;
};

TEST_F(MaintenanceTest, ASoundFileHasNoProblems) {
  EXPECT_THAT(Broken(""), IsEmpty());
  const auto info = ReadInfo(file_.path());
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->ablated_heads, 6);
}

TEST_F(MaintenanceTest, EntriesThatDoNotExistAndAnalysesThatRunAreSound) {
  file_.Execute(
      "UPDATE head_ablation SET correct = NULL, lost = NULL, gained = NULL, "
      "drop_standard_error = NULL, nll = NULL, nll_standard_error = NULL WHERE head = 2");
  EXPECT_THAT(Broken("UPDATE jobs SET state = 'queued'"), IsEmpty());
  file_.AddAttempt(1, 2, 2, "");
  EXPECT_THAT(Broken("UPDATE jobs SET state = 'running'"), IsEmpty());
  EXPECT_THAT(Broken("UPDATE jobs SET state = 'succeeded'"), IsEmpty())
      << "its worker has not confirmed the stop yet";
}

TEST_F(MaintenanceTest, AMatrixWithAHoleIsNotWhole) {
  EXPECT_THAT(Broken("DELETE FROM head_ablation WHERE layer = 1 AND head = 1"),
              ElementsAre("ablation matrices are whole"));
}

TEST_F(MaintenanceTest, CountsMustFollowFromEachOther) {
  EXPECT_THAT(Broken("UPDATE head_ablation SET lost = lost + 1 WHERE layer = 1 AND head = 1"),
              ElementsAre("ablated counts follow from each other"));
}

TEST_F(MaintenanceTest, HalfAnEntryIsNone) {
  EXPECT_THAT(Broken("UPDATE head_ablation SET nll = NULL WHERE layer = 0 AND head = 1"),
              ElementsAre("entries of an ablation matrix exist whole or not at all"));
}

TEST_F(MaintenanceTest, IndicesBelongToEveryMatrix) {
  for (const char* layer : {"-1", "0", "1"}) {
    DatabaseForTest other;
    const auto job = other.AddJob({.key = "a1", .epochs = 0});
    const auto attempt = other.AddAttempt(job, 1, 0, "succeeded");
    other.AddHeadAblation(job, attempt, 2, 3, 250, 300);
    other.Execute(std::string("DELETE FROM deposit_indices WHERE layer = ") + layer);
    const auto checks = CheckDatabase(other.path());
    ASSERT_TRUE(checks.ok());
    bool found = false;
    for (const Check& check : *checks) {
      if (check.name == "ablation matrices have their deposit indices") {
        found = check.problems.size() == 1;
      }
    }
    EXPECT_TRUE(found) << layer;
  }
}

TEST_F(MaintenanceTest, TrainingIsWholeWhateverTheJobDoesNow) {
  file_.Execute("UPDATE jobs SET state = 'queued'");
  EXPECT_THAT(Broken("DELETE FROM curves WHERE epoch = 1"),
              ElementsAre("trained jobs have every epoch", "summaries agree with the curves",
                          "best accuracies are those of the best epoch"));
}

TEST_F(MaintenanceTest, ATrainedJobNeitherFailsNorIsCancelled) {
  EXPECT_THAT(
      Broken("UPDATE jobs SET state = 'failed'"),
      ElementsAre("succeeded jobs are trained, and trained ones neither failed nor cancelled"));
}

TEST_F(MaintenanceTest, AFileFromBeforeTheFirstReleaseIsNamedWithWhatToDo) {
  file_.Execute("PRAGMA user_version = 1");
  const auto checks = CheckDatabase(file_.path());
  EXPECT_EQ(checks.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(checks.status().message()),
              ::testing::AllOf(::testing::HasSubstr("schema version 1"),
                               ::testing::HasSubstr("docs/operations.md")));
}

}  // namespace
}  // namespace pelab::db
