// Records what a history has promised so far, independently of the code under test, and checks that
// the database keeps these promises. It watches every batch that the store applies and everything
// that is acknowledged. It compares with the database after each start of the coordinator and at
// the end.
//
// A worker that lies may send false results, but it can change only its own attempts. What is
// stored about these keeps the rules (ledger_rules.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "core/state/state.h"
#include "server/store/store.h"
#include "tests/sim/bounds.h"
#include "tests/sim/sheet_ledger.h"
#include "tests/sim/world.h"

namespace pelab::sim {

class Ledger {
 public:
  Ledger(World& world, const Bounds& bounds)
      : world_(world), bounds_(bounds), dice_(world.DiceFor("ledger")) {}

  // The worker with this id may lie. To be told before its first hello.
  void Distrust(const std::string& worker_id) { liars_.insert(worker_id); }

  // Call before a batch is applied: if all of its writes must be refused, it looks now and then at
  // what is stored, and compares afterwards.
  void Applying(std::span<const store::Write> writes, store::Store& store);
  void CompareWithBefore(store::Store& store);
  // A batch is durable, with these answers. `wrote`: it changed a row of the database, which some
  // answers do not tell (a log of another worker's attempt, a pause of what was paused).
  void Applied(std::span<const store::Write> writes, std::span<const store::ApplyResult> results,
               bool wrote);
  // A batch was refused, or the process died in it. Until another batch is stored, it is unknown
  // whether a restart will find it.
  void Unknown();

  // The coordinator decides on an attempt, which is not stored yet.
  void Decides(const store::CreateAttempt& write) { decided_[write.job_id] = world_.Monotonic(); }
  // The coordinator ends an attempt by its own decision.
  void GivesUp(const store::EndAttempt& write);
  // A worker is told that its events up to `sequence` are stored.
  void Acknowledged(std::int64_t attempt_id, std::uint64_t sequence);
  // A person is told that the request is stored.
  void AcknowledgedSweep(std::int64_t sweep_id, const std::string& client_token);
  void AcknowledgedCancel(std::int64_t sweep_id) {
    if (reopened_since_.count(sweep_id) == 0) cancelled_.insert(sweep_id);
  }
  // Requests of clients and messages of workers that are not to be believed.
  void RefusedRequest() { counts_.requests_refused += 1; }
  void ToldLie() { counts_.lies += 1; }

  // The coordinator gives the attempt to a worker, or tells the worker that its events are stored.
  void Told(const std::string& worker_id, std::int64_t attempt_id);

  // The coordinator has heard from the worker that it holds the attempt; leases count from here.
  void Heard(const std::string& worker_id, const v1::HeldAttempt& held);
  // The worker has said goodbye.
  void Left(const std::string& worker_id) { left_.insert(worker_id); }
  // The workers with this name are about to be said to be gone. CheckGone follows at once, with the
  // number of attempts that the scheduler says it has ended.
  void SaidGone(const std::string& name);
  void CheckGone(const std::string& name, int ended);
  bool IsNamed(const std::string& worker_id, const std::string& name) const;
  // A worker got a job that needs a file, or said hello as one of the release before.
  void ToldOfFile() { counts_.with_files += 1; }
  void OldHello(const std::string& worker_id) {
    counts_.old_hellos += 1;
    were_old_.insert(worker_id);
  }
  // The scheduler hears of a message at most `delay` after the coordinator has read it.
  void SetSchedulerDelay(absl::Duration delay) { scheduler_delay_ = delay; }

  // Compares with the database as a new process finds it.
  void Compare(store::Store& store);
  // Nothing changes any more: checks every promise about stored data. `reader` reads the same file.
  void CheckEnd(store::Store& store, db::Reader& reader);
  // Whether it is not the turn of the round that is to begin or end, and how many were begun.
  template <typename RoundWrite>
  bool IsLate(const RoundWrite& write) const {
    return sheets_of_claims_.MustBeRefused(write);
  }
  std::int64_t RoundsOf(std::int64_t sheet_id) const {
    return sheets_of_claims_.RoundsOf(sheet_id);
  }
  // A settler of claims is told where its sheet stands.
  void Told(const v1::Settlement& settlement) { sheets_of_claims_.Told(settlement); }

  // The open attempt of the same job, and the number of its next event. The planted bug
  // `no_fencing` (journal.h) uses it.
  struct Open {
    std::int64_t attempt_id = 0;
    std::uint64_t token = 0;
    std::uint64_t sequence = 0;
  };
  std::optional<Open> OpenInsteadOf(std::int64_t attempt_id) const;
  // The number of examples of the attempt's job.
  std::int64_t ExamplesOf(std::int64_t attempt_id) const;

  // What a worker could get to know about an attempt of another one.
  struct Known {
    std::int64_t attempt_id = 0;
    std::uint64_t token = 0;
    std::uint64_t stored = 0;  // the number of its last stored event
    int epochs_done = 0;       // of its job
    bool open = false;
  };
  std::vector<Known> AttemptsOfOthers(const std::string& worker_id) const;

  // Counts of what happened, so that a test can require that everything was tried.
  struct Counts {
    std::uint64_t events = 0;  // stored events
    std::uint64_t duplicates = 0;
    std::uint64_t gaps = 0;
    std::uint64_t superseded = 0;
    std::uint64_t successes = 0;
    std::uint64_t lost = 0;              // attempts
    std::uint64_t starts = 0;            // starts of the coordinator
    std::uint64_t found_unanswered = 0;  // starts that found a batch whose answer nobody got
    // Changes by people.
    std::uint64_t controlled = 0;  // pauses, resumes, priorities
    std::uint64_t retried = 0;     // jobs
    std::uint64_t extended = 0;    // sweeps
    std::uint64_t drained = 0;     // drains of workers, and their ends
    std::uint64_t packed = 0;      // attempts that joined another attempt's slot
    // Lies and other requests that must be refused.
    std::uint64_t lies = 0;     // messages of lying workers
    std::uint64_t foreign = 0;  // events and logs about attempts of others, or with false tokens
    std::uint64_t broken = 0;   // events that broke a rule and ended their attempt
    std::uint64_t silent = 0;   // attempts given up because nothing was reported about them
    std::uint64_t requests_refused = 0;  // of clients
    // Reports of lost workers, and workers of two releases.
    std::uint64_t gone = 0;    // reports that a worker is gone
    std::uint64_t fenced = 0;  // attempts that they ended
    std::uint64_t losses = 0;  // lost attempts after which the job's count of losses was checked
    std::uint64_t old_hellos = 0;
    std::uint64_t with_files = 0;  // assignments of jobs that need a file
    std::uint64_t recorded = 0;    // epochs that were recorded and are stored
    // Claim sheets.
    std::uint64_t rounds = 0;         // that ended
    std::uint64_t put_aside = 0;      // requests that put claims aside
    std::uint64_t sheets_played = 0;  // once more, undisturbed
    std::uint64_t changes_stale = 0;  // of sheets, that others had made before

    void operator+=(const Counts& more);
  };
  const Counts& counts() const { return counts_; }

 private:
  struct Attempt {
    std::int64_t job_id = 0;
    std::uint64_t token = 0;
    std::uint64_t stored = 0;        // the last stored sequence number
    std::uint64_t acknowledged = 0;  // the last one acknowledged to its worker
    int epochs = 0;                  // stored epochs
    bool open = true;
    bool analyses_only = false;
    std::optional<int> start_epoch;
    absl::Duration created;
    absl::Duration decided;  // when the scheduler decided on it, which is before it was stored
    std::string worker_id;
    int slot = 0;
    std::uint64_t batch = 0;      // the batch of writes that created it
    std::set<std::string> asked;  // the analyses that it was asked for (NameOfAnalysis)
    bool not_held = false;        // a later hello of its worker did not name it
    bool launched = false;        // the scheduler has certainly heard that it is stored
    bool seen = false;            // its worker has said something about it
    bool ending = false;          // the scheduler has asked for its end
    int last_epoch = -1;          // the highest stored epoch; -1: none
    bool analyzed = false;        // an analysis is stored
  };
  struct Job {
    std::string key;
    int epochs = 0;
    int epochs_done = 0;     // epochs in the accepted history
    int successes = 0;       // attempts that trained it to the end
    std::optional<int> how;  // how its first attempt computed (HowOf)
  };

  // A sweep as its requests left it.
  struct Sweep {
    std::string token;
    std::string request;  // hash of the request that the token belongs to
    int priority = 0;
    int extensions = 0;
  };

  bool Trusts(const std::string& worker_id) const { return liars_.count(worker_id) == 0; }
  // The attempt with this token if it is of this worker; null: there is none.
  const Attempt* Find(std::int64_t attempt_id, std::uint64_t token,
                      const std::shared_ptr<const std::string>& worker) const;
  struct Judge;
  // Whether the write must change nothing, whatever the store makes of it.
  bool MustBeRefused(const store::Write& write) const;
  bool KnowsWorker(const std::string& text) const;
  const Sweep* SweepOf(const std::string& token) const;  // null: the token was not used

  void On(const store::CreateAttempt& write, const store::WriteResult& result);
  void On(const store::AttemptEvent& write, const store::WriteResult& result);
  void On(const store::EndAttempt& write, const store::WriteResult& result);
  void On(const store::WorkerHello& write, const store::WriteResult& result);
  void On(const store::AppendLog& write, const store::WriteResult& result);
  void On(const store::SubmitSweep& write, const store::WriteResult& result);
  void On(const store::ExpandSlice& write, const store::WriteResult& result);
  void On(const store::Analyze& write, const store::WriteResult& result);
  void On(const store::CancelSweep& write, const store::WriteResult& result);
  void On(const store::DeleteSweep& write, const store::WriteResult& result);
  void On(const store::ControlSweep& write, const store::WriteResult& result);
  void On(const store::ExtendSweep& write, const store::WriteResult& result);
  void On(const store::DrainWorker& write, const store::WriteResult& result);
  void On(const store::ReopenSweep& write, const store::WriteResult& result);
  void On(const store::RegisterSheet& write, const store::WriteResult& result);
  void On(const store::BeginRound& write, const store::WriteResult& result);
  void On(const store::EndRound& write, const store::WriteResult& result);
  void On(const store::PutAside& write, const store::WriteResult& result);
  void On(const store::RetrySlice& write, const store::WriteResult& result);
  void On(const store::RetryJob& write, const store::WriteResult& result);
  void CheckSlot(const store::CreateAttempt& write);
  bool Advanced(std::int64_t attempt_id) const;
  void NoteLosses(std::span<const store::Write> writes, store::Store& store);
  void NoteReopened(std::span<const store::Write> writes);
  void CheckLosses(store::Store& store);
  void Superseded(const store::SliceStored& slice);
  template <typename T>
  void On(const T&, const store::WriteResult&) {}

  template <typename... Args>
  void Note(const Args&... args) {
    world_.Note("  ", args...);
  }
  void OnStored(const v1::Event& event, Attempt& attempt, const store::EventStored& result);
  void OnRefused(const v1::Event& event, Attempt& attempt, const store::EventStored& result);
  void CheckBody(const v1::Event& event, Attempt& attempt);
  bool WasSaidGone(const Attempt& attempt, const std::string& error) const;
  void CheckLease(std::int64_t attempt_id, const Attempt& attempt);
  void CheckSilence(std::int64_t attempt_id, const Attempt& attempt);
  std::uint64_t Stored() const;  // the number of stored attempts and events
  void CompareAttempts(store::Store& store);
  void CompareJobs(store::Store& store);
  void CompareSweeps(store::Store& store);
  void CheckCurves(store::Store& store);
  void CheckAnalyses(store::Store& store);
  void CheckTexts(store::Store& store);
  void CheckBudgets(store::Store& store);

  template <typename... Args>
  void Violate(const Args&... args) {
    world_.Violate(absl::StrCat(args...));
  }

  World& world_;
  const Bounds& bounds_;
  Dice dice_;
  std::set<std::string> liars_;  // ids
  absl::Duration scheduler_delay_;
  bool unknown_ = false;
  std::vector<std::int64_t> extending_;  // sweeps that the batch extends
  std::map<std::int64_t, Attempt> attempts_;
  std::map<std::int64_t, Job> jobs_;
  std::map<std::int64_t, Sweep> known_;                                 // every stored sweep
  std::map<std::string, std::pair<std::string, std::string>> workers_;  // id -> name and host
  std::map<std::int64_t, std::string> sweeps_;  // acknowledged sweeps with their tokens
  SheetLedger sheets_of_claims_{world_};
  std::set<std::int64_t> cancelled_;  // acknowledged cancels
  // Sweeps that a settler may have reopened after the last cancel.
  std::set<std::int64_t> reopened_since_;
  struct Word {
    absl::Duration last;     // when the latest message arrived
    absl::Duration counted;  // when the scheduler has certainly heard of it
  };
  std::map<std::int64_t, Word> heard_;
  std::set<std::string> left_;      // workers that said goodbye
  std::set<std::string> were_old_;  // workers that once were of the release before
  // When the last news about an attempt of a worker's slot was stored.
  std::map<std::pair<std::string, int>, absl::Duration> news_;
  std::optional<std::string> before_;  // what was stored before a batch that must change nothing
  // Attempts that the batch may end by the coordinator's decision, and their jobs' losses before.
  struct Loss {
    int before = 0;
    state::Event event = state::Event::kLose;
    bool ended = false;
    bool advanced = false;
  };
  std::map<std::int64_t, Loss> losses_;             // by job
  std::map<std::int64_t, absl::Duration> decided_;  // the last decision on an attempt, by job
  std::map<std::string, absl::Duration> gone_;      // when a name was last said to be gone
  std::map<std::string, absl::Duration> hellos_;    // when the last hello of a worker was stored
  std::uint64_t given_up_ = 0;                      // attempts whose end the scheduler asked for
  std::uint64_t given_up_before_ = 0;               // before the latest report
  std::uint64_t batches_ = 0;
  Counts counts_;
};

}  // namespace pelab::sim
