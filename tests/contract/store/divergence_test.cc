// Finds diverged trainings by the losses of their last epoch, both for new jobs and for databases
// from before this was recorded.
#include "core/db/check/check.h"
#include "core/db/read/reader.h"
#include "core/experiment/canonical_json.h"
#include "core/experiment/configuration.h"
#include "core/experiment/job.h"
#include "tests/contract/store/old_databases.h"
#include "tests/contract/store/store_fixture.h"

namespace pelab::store {
namespace {

// A task with 70 classes: guessing has a loss of ln 70 = 4.248, and 4.673 is a tenth above that.
NewCell RealCell(std::uint64_t ordinal) {
  NewCell cell = Cell(ordinal, absl::StrCat("k", ordinal));
  cell.spec_json = ToCanonicalJson(
      experiment::MakeJob("clean", "rope", "distance", cell.seed,
                          {{"task.max_distance", catalog::Value(std::int64_t{70})}}));
  return cell;
}

class DivergenceTest : public StoreTest {
 protected:
  void TrainTo(std::int64_t job, double train_loss, double test_loss) {
    Attempt attempt = Assign(job, 100 + job);
    Train(attempt, 0, 2);
    Epoch last = MakeEpoch(2);
    last.train_loss = train_loss;
    last.test_loss = test_loss;
    Event(attempt.Next(last));
    EXPECT_EQ(Text("SELECT sum(diverged) FROM v_jobs WHERE NOT trained"), "0")
        << "nothing is said of a job that has not succeeded";
    Event(attempt.Next(Matrix()));
    ASSERT_EQ(Event(attempt.Next(Finished{})).change->outcome, state::Outcome::kSucceeded);
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

// Writes two jobs with the SQL of schema 10. The last epoch of the second job is not in its curve
// yet.
void FillSchema10(SQLite::Database& db) {
  const std::string shared = experiment::TemplateOf(RealCell(0).spec_json, 0);
  SQLite::Statement configuration(
      db, "INSERT INTO configurations (configuration_id, template) VALUES (50, ?)");
  configuration.bind(1, shared);
  configuration.exec();
  db.exec(
      "INSERT INTO workers (worker_id, host, version, slots_json, slots, capabilities_json, state, "
      "last_seen_at) VALUES ('w50', 'h', '1', '[]', 1, '{}', 'offline', 1);"
      "INSERT INTO jobs (job_id, key, generation, pe, pe_label, task, protocol, seed, "
      "configuration_id, device_kind, memory_bytes, state, trained, attempts, epochs, epochs_done, "
      "train_correct, train_total, test_correct, test_total, best_test_correct, best_test_total, "
      "created_at) VALUES (51, 'k51', 1, 'rope', 'rope', 'distance', 'clean', 0, 50, 'any', 0, "
      "'succeeded', 1, 1, 1, 1, 1, 9, 1, 9, 1, 9, 1), (52, 'k52', 1, 'rope', 'rope', 'distance', "
      "'clean', 1, 50, 'any', 0, 'succeeded', 1, 1, 2, 2, 1, 9, 1, 9, 1, 9, 1);"
      "INSERT INTO attempts (attempt_id, job_id, number, token, worker_id, slot, device, "
      "analyses_json, start_epoch, outcome, started_at, ended_at) VALUES (51, 51, 1, 1, 'w50', 0, "
      "'cpu', '[]', 0, 'succeeded', 1, 2), (52, 52, 1, 1, 'w50', 0, 'cpu', '[]', 0, 'succeeded', "
      "1, 2);"
      "INSERT INTO curves VALUES (51, 0, 0.5, 1, 9, 0.25, 1, 9, 0.1, 1), "
      "(52, 0, 0.5, 1, 9, 0.5, 1, 9, 0.1, 1);"
      "INSERT INTO staged_epochs VALUES (1, 52, 1, 3e7, 1, 9, 2e7, 1, 9, 0.1, 1);");
}

TEST_P(DivergenceTest, AFileFromBeforeIsJudgedOnce) {
  store_.reset();
  path_ = directory_ + "/old.db";
  WriteOldDatabase(path_, 10);
  {
    SQLite::Database db(path_, SQLite::OPEN_READWRITE);
    FillSchema10(db);
  }
  Open();
  EXPECT_EQ(Text("SELECT train_loss, test_loss, diverged FROM v_jobs WHERE job_id > 50"),
            "0.5 0.25 0 30000000.0 20000000.0 1");
}

}  // namespace
}  // namespace pelab::store
