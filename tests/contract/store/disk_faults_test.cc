// Runs the life of a small sweep and lets every write, sync and truncation fail once, in every way.
// Failed writes must not be acknowledged, and acknowledged writes must survive a power loss. The
// same process must continue once the disk works again, and a restart must repair the database. The
// store's contents are compared, step by step, with those of a life without faults.
#include <SQLiteCpp/SQLiteCpp.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "core/db/check/check.h"
#include "tests/contract/store/store_fixture.h"
#include "tests/support/faulty_vfs.h"
#include "tests/support/status_matchers.h"

namespace pelab::store {
namespace {

using Fault = FaultyVfs::Fault;

constexpr char kOtherParameters[] = R"({"data":"test","hygiene":"raw","method":"mean"})";
constexpr char kPath[] = "pelab.db", kWal[] = "pelab.db-wal";

// Every operation fails once. Under a sanitizer only every third one does: there the failure code
// matters, not each position in the file.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t kStride = 3;
#else
constexpr std::uint64_t kStride = 1;
#endif

// The writes of one batch. An empty step stands for the work between batches.
using Step = std::vector<Write>;

SubmitSweep Submission(const std::string& token, std::uint64_t cells) {
  return {.name = token,
          .protocol = "clean",
          .document = std::string(9000, 'd'),  // more than a page
          .file_name = "f.yaml",
          .overrides_json = "[]",
          .client_token = token,
          .analyses_json = kAnalyses,
          .resources_json = "{}",
          .cells = cells,
          .now = 1000};
}
ExpandSlice Slice(std::int64_t sweep, std::uint64_t from, bool last, std::vector<NewCell> cells) {
  return {.sweep_id = sweep,
          .from = from,
          .next = from + cells.size(),
          .last = last,
          .cells = std::move(cells),
          .now = 1000};
}
CreateAttempt Assign(std::int64_t job, std::uint64_t token) {
  return {.job_id = job, .worker_id = "w", .slot = 0, .device = "cpu", .token = token, .now = 2000};
}

// The ids are those of a fresh database. Every step may be applied again.
std::vector<Step> Life() {
  const WorkerHello hello{.worker_id = "w",
                          .host = "h",
                          .version = "1",
                          .slots_json = "[]",
                          .slots = 1,
                          .capabilities_json = "{}",
                          .now = 1000};
  const Analysis other{"head_ablation", 2, kOtherParameters};
  Attempt lost{1, 71};
  Attempt trains{2, 72};
  Attempt stopped{3, 73};
  Attempt analyses{4, 74};
  const Execution execution{.threads = 1, .micro_batch = 0, .packing = 1};
  const auto started = [&](int at) { return StartedEvent(at, 3, "{}", execution); };
  return {
      {Submission("a", 2)},
      {Slice(1, 0, false, {Cell(0, "k0")})},
      {Slice(1, 1, true, {Cell(1, "k1")})},
      {hello},
      {Assign(1, 71)},
      {lost.Next(started(0)), lost.Next(MakeEpoch(0))},
      {lost.Next(MakeEpoch(1)), AppendLog{1, 71, 0, std::string(5000, 'l')}},
      {},
      {EndAttempt{1, state::Event::kLose, "its lease ran out", 3000}},
      {Assign(1, 72)},
      {trains.Next(started(1))},
      {trains.Next(MakeEpoch(1)), trains.Next(MakeEpoch(2))},
      {trains.Next(Matrix())},
      {trains.Next(ArtifactEvent(kWeightsName, kWeightsHash, 12))},
      {trains.Next(SucceededEvent(9.5))},
      {Assign(2, 73)},
      {Submission("b", 1), Slice(2, 0, true, {Cell(0, "k1")})},
      {stopped.Next(started(0)), stopped.Next(MakeEpoch(0))},
      {},
      {CancelSweep{1, 4000}},
      {CancelSweep{2, 4000}},
      {stopped.Next(EndEvent(v1::ATTEMPT_OUTCOME_CANCELLED))},
      {Analyze{.jobs = {1}, .analyses = {other}, .now = 5000}},
      {Assign(1, 74)},
      {analyses.Next(started(3))},
      {analyses.Next(Matrix(kOtherParameters)), analyses.Next(SucceededEvent(1))},
      {},
  };
}

absl::StatusOr<std::unique_ptr<Store>> OpenOn(const FaultyVfs& vfs) {
  // Small limits, so that epochs are moved in nearly every step.
  StoreOptions options;
  options.vfs = vfs.name();
  options.staging = {.rows = 2, .transactions = 2, .least_moved = 1, .moved_when_idle = 1};
  return Store::Open(kPath, options);
}

// Every row of every table, except which workers are connected (none after a start) and where an
// epoch is stored.
std::string Contents(Store& store) {
  SQLite::Database& db = store.database().connection();
  std::vector<std::string> tables;
  SQLite::Statement names(db,
                          "SELECT name FROM sqlite_master WHERE name = 'stored_epochs' OR (type = "
                          "'table' AND name NOT IN ('curves', 'staged_epochs', 'epoch_move')) "
                          "ORDER BY 1");
  while (names.executeStep()) tables.push_back(names.getColumn(0).getString());
  std::string all;
  for (const std::string& table : tables) {
    SQLite::Statement rows(db, table == "workers"
                                   ? "SELECT worker_id, host, last_seen_at FROM workers"
                                   : absl::StrCat("SELECT * FROM ", table, " ORDER BY 1, 2"));
    while (rows.executeStep()) {
      absl::StrAppend(&all, table);
      for (int i = 0; i < rows.getColumnCount(); ++i) {
        absl::StrAppend(&all, "|", rows.getColumn(i).getString());
      }
      absl::StrAppend(&all, "\n");
    }
  }
  return all;
}

std::string FirstDifference(const std::string& found, const std::string& wanted) {
  const std::vector<std::string> a = absl::StrSplit(found, '\n');
  const std::vector<std::string> b = absl::StrSplit(wanted, '\n');
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (a[i] != b[i]) return absl::StrCat(a[i], " instead of ", b[i]);
  }
  return absl::StrCat(a.size(), " rows instead of ", b.size());
}

std::string Problems(Store& store) {
  std::string all;
  for (const db::Check& check : db::CheckConnection(store.database().connection())) {
    for (const std::string& problem : check.problems) {
      absl::StrAppend(&all, check.name, ": ", problem, "\n");
    }
  }
  return all;
}

// Applies one step; false if it is not acknowledged.
bool Do(Store& store, const Step& step) {
  if (step.empty()) {
    store.MoveEpochs();
    store.Checkpoint(/*truncate=*/false);
    return true;
  }
  const auto results = store.Apply(step);
  if (!results.ok()) return false;
  for (const ApplyResult& result : *results) EXPECT_THAT(result.status(), IsOk());
  return true;
}

class DiskFaultsTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    // As in the coordinator. It is refused, without harm, if an earlier suite opened a database.
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    // A fork keeps the memory that it frees, which the kernel would have to clear again and again.
    mallopt(M_TRIM_THRESHOLD, 256 << 20);
    mallopt(M_TOP_PAD, 4 << 20);
  }

  DiskFaultsTest() {
    FaultyVfs vfs;
    auto store = *OpenOn(vfs);
    contents_.push_back(Contents(*store));
    store.reset();
    empty_ = vfs.Save();
    store = *OpenOn(vfs);
    for (const Step& step : life_) {
      EXPECT_TRUE(Do(*store, step));
      contents_.push_back(Contents(*store));
    }
    EXPECT_EQ(Problems(*store), "");
    store->Checkpoint(/*truncate=*/true);
    ExpectSurvivors(vfs, life_.size(), true);
    last_file_ = vfs.Read(kPath);
  }

  // Checks the disk after the machine or the process died: acknowledged batches are there, and of
  // others all or nothing.
  void ExpectSurvivors(const FaultyVfs& vfs, std::size_t acknowledged, bool power_loss) {
    FaultyVfs other(vfs.operations());
    other.Load(vfs.Save());
    if (power_loss) {
      other.LosePower(0.5);
      other.Restart();
    }
    // The file of a whole life without faults was opened in the constructor.
    if (acknowledged == life_.size() && last_file_ && other.Read(kPath) == last_file_ &&
        other.Read(kWal).value_or("").empty()) {
      return;
    }
    const auto store = OpenOn(other);
    ASSERT_THAT(store, IsOk());
    ExpectSurvived(**store, acknowledged, power_loss);
  }
  void ExpectSurvived(Store& store, std::size_t acknowledged, bool power_loss) {
    const std::string found = Contents(store);
    const std::size_t next = std::min(acknowledged + 1, life_.size());
    EXPECT_TRUE(found == contents_[acknowledged] || found == contents_[next])
        << "after " << acknowledged << " steps and a " << (power_loss ? "power loss" : "crash")
        << ": " << FirstDifference(found, contents_[acknowledged]);
    EXPECT_EQ(store.database().connection().execAndGet("PRAGMA integrity_check").getString(), "ok");
  }

  enum class AtFailure { kGoOn, kHeal, kRestart };

  // Leaves the store of a process that has died, or of a fork that ends, without closing it. The
  // store is its parent's memory, of which the kernel would copy every page that is freed.
  static void Leave(std::unique_ptr<Store> store) { static_cast<void>(store.release()); }

  // Goes on after `done` steps with a disk that fails. Returns before the next step is acknowledged
  // if the fault comes later than in this step.
  void LiveOn(FaultyVfs& vfs, std::unique_ptr<Store> store, std::size_t done, std::uint64_t at,
              AtFailure at_failure) {
    bool restarted = false;  // true until the first acknowledgement after a restart
    for (int tries = 0; done < life_.size(); ++tries) {
      ASSERT_LE(tries, 200) << "it does not go on at step " << done;
      const std::uint64_t failures = vfs.failures();
      const bool acknowledged = Do(*store, life_[done]) && !vfs.down();
      if (vfs.failures() == 0) return Leave(std::move(store));
      EXPECT_TRUE(!acknowledged || life_[done].empty() || vfs.failures() == failures)
          << "step " << done << " was acknowledged over a failure";
      if (vfs.failures() != failures && !vfs.down()) {
        ExpectSurvivors(vfs, done + acknowledged, (vfs.failures() + at) % 2 == 0);
      }
      if (acknowledged) {
        ++done;
        if (restarted) ExpectSurvivors(vfs, done, true);
        restarted = false;
        continue;
      }
      if (at_failure != AtFailure::kGoOn) vfs.ClearFault();
      if (at_failure == AtFailure::kRestart) vfs.Crash();
      if (!vfs.down()) continue;
      Leave(std::move(store));
      vfs.Restart();
      auto opened = OpenOn(vfs);
      ASSERT_THAT(opened, IsOk());
      store = *std::move(opened);
      ExpectSurvived(*store, done, false);
      if (at_failure == AtFailure::kRestart) restarted = true;
    }
    vfs.ClearFault();
    EXPECT_TRUE(Contents(*store) == contents_.back())
        << FirstDifference(Contents(*store), contents_.back());
    store->Checkpoint(/*truncate=*/true);
    ExpectSurvivors(vfs, life_.size(), true);
    Leave(std::move(store));
  }

  enum Ending : int { kLivedOn, kFailed, kFaultComesLater };

  // Runs `act` in a fork, which has the steps so far without repeating them for each fault. An
  // exception ends the fork: outside of it, the test program would run a second time.
  template <class Act>
  static Ending InFork(Act act) {
    std::fflush(nullptr);  // or both would print it
    const pid_t child = fork();
    if (child < 0) return kFailed;
    if (child == 0) {
      const Ending ending = [&]() noexcept { return act(); }();
      std::fflush(nullptr);
      _exit(HasFailure() ? kFailed : ending);
    }
    int status = 0;
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status)) return kFailed;
    // A sanitizer has a status of its own.
    const int code = WEXITSTATUS(status);
    return code == kLivedOn || code == kFaultComesLater ? Ending{code} : kFailed;
  }

  // One life without a fault. Before each step, forks live on, with a fault at each operation of
  // that step.
  void Sweep(Fault fault, AtFailure at_failure = AtFailure::kGoOn) {
    SweepSome(fault, at_failure, /*first=*/1, kStride);
  }
  // The fault is at the operations first, first + stride, …
  void SweepSome(Fault fault, AtFailure at_failure, std::uint64_t first, std::uint64_t stride) {
    FaultyVfs vfs;
    vfs.Load(empty_);
    auto store = *OpenOn(vfs);
    const std::uint64_t before = vfs.operations(fault.kinds);
    std::uint64_t at = first;
    for (std::size_t done = 0; done < life_.size(); ++done) {
      // The step's first operation is the next one to fail: none is left out.
      const std::uint64_t past = vfs.operations(fault.kinds) - before;
      ASSERT_GT(at, past);
      ASSERT_LE(at, past + stride);
      for (;; at += stride) {
        const Ending ending = InFork([&] {
          SCOPED_TRACE(absl::StrCat("operation ", at));
          vfs.Seed(at);
          fault.at = before + at;
          vfs.Set(fault);
          LiveOn(vfs, std::move(store), done, at, at_failure);
          return vfs.failures() == 0 ? kFaultComesLater : kLivedOn;
        });
        ASSERT_NE(ending, kFailed) << "operation " << at;
        if (ending == kFaultComesLater) break;
      }
      EXPECT_TRUE(Do(*store, life_[done]));
    }
    EXPECT_GT(at, life_.size()) << "fewer operations than steps";
  }

  const std::vector<Step> life_ = Life();
  FaultyVfs::Image empty_;
  std::vector<std::string> contents_;  // contents after each number of steps
  std::optional<std::string> last_file_;
};

TEST_F(DiskFaultsTest, EveryOperationFailsOnce) { Sweep({.how = Fault::kIoError}); }
TEST_F(DiskFaultsTest, EverySyncFailsOnce) {
  Sweep({.kinds = FaultyVfs::kSync, .how = Fault::kIoError});
}
TEST_F(DiskFaultsTest, SyncsFailForAWhile) {
  Sweep({.times = 7, .kinds = FaultyVfs::kSync, .how = Fault::kIoError});
}
// Data of a failed sync looks written to the next process, but is not durable.
TEST_F(DiskFaultsTest, ASyncFailsAndTheProcessIsRestarted) {
  Sweep({.kinds = FaultyVfs::kSync, .how = Fault::kIoError}, AtFailure::kRestart);
}
// A full disk takes nothing of a write, or a part of it: the two take turns.
TEST_F(DiskFaultsTest, TheDiskIsFullFromEveryOddWriteUntilThereIsRoom) {
  SweepSome({.times = 1'000'000, .kinds = FaultyVfs::kWrite, .how = Fault::kFull}, AtFailure::kHeal,
            1, 2 * kStride);
}
TEST_F(DiskFaultsTest, TheDiskFillsInTheMiddleOfEveryEvenWrite) {
  SweepSome({.kinds = FaultyVfs::kWrite, .how = Fault::kShort}, AtFailure::kGoOn, 2, 2 * kStride);
}
// A power failure leaves less than a process that dies, so the two take turns.
TEST_F(DiskFaultsTest, TheProcessDiesAtEveryOddOperation) {
  SweepSome({.how = Fault::kCrash}, AtFailure::kGoOn, 1, 2 * kStride);
}
TEST_F(DiskFaultsTest, ThePowerFailsAtEveryEvenOperation) {
  SweepSome({.how = Fault::kPowerLoss}, AtFailure::kGoOn, 2, 2 * kStride);
}

// For a file that is being created, and for one that is opened again with a leftover WAL. A process
// that dies and a power failure take turns here, too.
TEST_F(DiskFaultsTest, OpeningFailsWholeAndSucceedsLater) {
  for (const bool is_new : {true, false}) {
    FaultyVfs::Image left;
    {
      FaultyVfs vfs;
      vfs.Load(is_new ? FaultyVfs::Image{} : empty_);
      if (!is_new) {
        const auto store = *OpenOn(vfs);
        for (const Step& step : life_) Do(*store, step);
        vfs.Crash();
      }
      left = vfs.Save();
    }
    const std::string& wanted = is_new ? contents_.front() : contents_.back();
    for (const bool dies : {false, true}) {
      for (std::uint64_t at = 1;; at += kStride) {
        const Fault::How death = at % 2 == 1 ? Fault::kCrash : Fault::kPowerLoss;
        const Fault::How how = dies ? death : Fault::kIoError;
        SCOPED_TRACE(absl::StrCat("new ", is_new, ", fault ", how, " at ", at));
        FaultyVfs vfs(at);
        vfs.Load(left);
        vfs.Set({.at = at, .how = how});
        const absl::Status first = OpenOn(vfs).status();
        const bool failed = vfs.failures() > 0;
        vfs.ClearFault();
        if (!vfs.down()) vfs.LosePower(0.5);
        vfs.Restart();
        const auto store = OpenOn(vfs);
        ASSERT_THAT(store, IsOk()) << "the first try: " << first;
        EXPECT_TRUE(Contents(**store) == wanted) << FirstDifference(Contents(**store), wanted);
        if (!failed) break;
      }
    }
  }
}

}  // namespace
}  // namespace pelab::store
