// Finds diverged trainings by the losses of their last epoch.
#include "core/db/check/check.h"
#include "core/db/read/reader.h"
#include "core/experiment/canonical_json.h"
#include "core/experiment/job.h"
#include "tests/contract/store/store_fixture.h"

namespace pelab::store {
namespace {

// The data and the model of MakeEpoch and Matrix. The task has 70 classes: guessing has a loss of
// ln 70 = 4.248, and 4.673 is a tenth above that.
NewCell RealCell(std::uint64_t ordinal) {
  NewCell cell = Cell(ordinal, absl::StrCat("k", ordinal));
  cell.spec_json = ToCanonicalJson(
      experiment::MakeJob("clean", "rope", "distance", cell.seed,
                          {{"task.max_distance", catalog::Value(std::int64_t{70})},
                           {"task.train_examples", catalog::Value(std::int64_t{99})},
                           {"task.test_examples", catalog::Value(std::int64_t{97})},
                           {"model.layers", catalog::Value(std::int64_t{2})},
                           {"model.heads", catalog::Value(std::int64_t{2})}}));
  return cell;
}

class DivergenceTest : public StoreTest {
 protected:
  void TrainTo(std::int64_t job, double train_loss, double test_loss) {
    Attempt attempt = Assign(job, 100 + job);
    Train(attempt, 0, 2);
    v1::Epoch last = MakeEpoch(2);
    last.set_train_loss(train_loss);
    last.set_test_loss(test_loss);
    Event(attempt.Next(last));
    EXPECT_EQ(Text("SELECT sum(diverged) FROM v_jobs WHERE NOT trained"), "0")
        << "nothing is said of a job that has not succeeded";
    Event(attempt.Next(Matrix()));
    ASSERT_EQ(Event(attempt.Next(SucceededEvent())).change->outcome, state::Outcome::kSucceeded);
  }

  void ExpectSound() {
    const auto checks = db::CheckDatabase(path_);
    ASSERT_TRUE(checks.ok()) << checks.status();
    for (const db::Check& check : *checks) {
      EXPECT_THAT(check.problems, testing::IsEmpty()) << check.name;
    }
  }
};
INSTANTIATE_TEST_SUITE_P(File, DivergenceTest, testing::Values(true));

TEST_P(DivergenceTest, BothFinalLossesAreAboveChance) {
  Submit("a", {RealCell(0), RealCell(1), RealCell(2), RealCell(3), RealCell(4)});
  TrainTo(1, 3e7, 2e7);
  TrainTo(2, 4.67, 4.67);  // learned nothing
  TrainTo(3, 0.1, 9.0);    // memorized the training set
  TrainTo(4, 9.0, 4.0);    // bad train loss, good test loss
  TrainTo(5, 4.68, 4.68);
  EXPECT_EQ(Text("SELECT diverged FROM v_jobs ORDER BY job_id"), "1 0 0 0 1");
  EXPECT_EQ(Text("SELECT train_loss, test_loss FROM v_jobs WHERE job_id = 3"), "0.1 9.0");
  ExpectSound();
  const auto reader = db::Reader::Open(path_);
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ((*reader)->GetSweep("1")->diverged(), 2u);
  EXPECT_EQ((*reader)->ListSweeps({})->sweeps(0).diverged(), 2u);
}

TEST_P(DivergenceTest, ASpecThatCannotBeReadSaysNothing) {
  Submit("a", {Cell(0, "k0")});
  TrainTo(1, 3e7, 2e7);
  EXPECT_EQ(Text("SELECT diverged FROM v_jobs"), "0");
  ExpectSound();
}

}  // namespace
}  // namespace pelab::store
