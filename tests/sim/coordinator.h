// A simulated coordinator: the real store, scheduler, sessions and expansion. Its processes run one
// after another on one disk.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/db/read/reader.h"
#include "core/experiment/sweep.h"
#include "pelab/v1/claims.pb.h"
#include "server/sched/scheduler.h"
#include "server/service/worker_session.h"
#include "tests/sim/bounds.h"
#include "tests/sim/journal.h"
#include "tests/sim/ledger.h"
#include "tests/sim/wire.h"
#include "tests/sim/world.h"
#include "tests/support/faulty_vfs.h"

namespace pelab::sim {

inline constexpr char kPath[] = "pelab.db";  // of the database on the simulated disk

using SharedSweep = std::shared_ptr<const experiment::Sweep>;
// The parsed document, with its overrides in their form in the database. Each is parsed once per
// program run.
SharedSweep Parsed(const std::string& document, const std::string& overrides_json = "[]");
// The sweep with the seeds of its extensions added.
SharedSweep WithSeeds(SharedSweep sweep, const std::vector<std::string>& extensions);

class SimStream;

class Coordinator {
 public:
  Coordinator(World& world, Ledger& ledger, const Bounds& bounds, std::uint64_t seed,
              const Planted& planted);
  ~Coordinator();

  // Starts a process, and another one whenever a process dies.
  void Run() { Start(); }
  bool up() const { return process_ != nullptr; }

  // Each of these functions ends the process. Another one starts after `outage`.
  void Kill(absl::Duration outage);
  void LosePower(double survivors, absl::Duration outage);
  void Stop(absl::Duration outage);  // an orderly shutdown

  FaultyVfs& disk() { return vfs_; }
  void SetCommitTime(absl::Duration time) { commit_time_ = time; }
  void Stall(absl::Duration time);  // blocks the scheduler's thread

  // Connects a worker; null if the coordinator does not answer.
  std::shared_ptr<Wire> Connect(const Link& link);
  // Stores a worker's file; false if the coordinator does not answer.
  bool PutArtifact(const std::string& sha256);
  bool HasArtifact(const std::string& sha256) const { return artifacts_.count(sha256) != 0; }

  // Requests of people. `answer` is not called if the process dies first.
  using Answer = std::function<void(absl::StatusOr<store::WriteResult>)>;
  void Submit(const std::string& document, const std::string& token, bool fresh, int priority,
              Answer answer);
  void Cancel(store::Write write, Answer answer);
  void Analyze(std::int64_t sweep_id, std::vector<store::Analysis> analyses, Answer answer);
  void Control(const store::ControlSweep& write, Answer answer);
  void RetryJob(std::int64_t job_id, bool failed_only, Answer answer);
  void RetryFailed(std::int64_t sweep_id, std::int64_t from, Answer answer);  // in slices
  // The answer's `applied` is false if there was nothing to add.
  void Extend(std::int64_t sweep_id, const std::string& seeds, Answer answer);
  void Drain(const std::string& worker_id, v1::Drain::Mode drain, Answer answer);
  // The workers with this name are said to be gone. The answer is how many attempts that has ended.
  using GoneAnswer = std::function<void(absl::StatusOr<int>)>;
  void WorkerGone(const std::string& name, GoneAnswer answer);
  // Claim sheets (settling.cc). An answer is what the coordinator's client gets.
  using SheetAnswer = std::function<void(absl::StatusOr<v1::Settlement>)>;
  void RegisterSheet(const v1::RegisterSheetRequest& request, SheetAnswer answer);
  void Advance(const v1::AdvanceRequest& request, SheetAnswer answer);
  // A write as it is, of which the scheduler need not hear: it must change nothing.
  void Try(store::Write write, Answer answer);
  // Deletes a sweep if it is live and stays so until the request is stored: this must be refused.
  void DeleteLive(std::int64_t sweep_id, Answer answer);

  // True if nothing is open any more: no sweep, job, attempt or write.
  bool Quiet();
  bool SomeInQuarantine() const;                                   // of the workers
  std::string Stuck();                                             // what is still open
  std::int64_t JobOf(std::int64_t sweep_id, std::uint64_t index);  // 0: there is none
  std::int64_t Attempts();                                         // the ID of the last attempt
  std::size_t SlotsUsedAfter(std::int64_t attempt_id);
  void CheckEnd();

 private:
  friend class SimStream;
  struct Process;

  struct Advancing;  // a request to advance a sheet

  void Start();
  absl::Status StartProcess();
  void Bury(absl::Duration outage);
  void BreakWires(bool quietly);
  void Expand(std::int64_t sweep_id, SharedSweep sweep, std::uint64_t from);
  void TellRetried(const store::WriteResult& result);
  db::Reader& Reading();
  void TakeStep(const std::shared_ptr<Advancing>& advancing);
  void StoreChange(const std::shared_ptr<Advancing>& advancing, store::Write write);
  store::Write Spoiled(store::Write write);  // as the planted bugs change it
  absl::Status OnStored(Advancing& advancing, absl::StatusOr<store::WriteResult> result);
  void AnswerSheet(const absl::StatusOr<v1::Settlement>& settlement, const SheetAnswer& answer);
  void SubmitStored(const std::string& document, const std::string& token, bool fresh, int priority,
                    Answer answer);
  void Append(store::Write write, std::function<void(const store::WriteResult&)> then,
              Answer answer);
  std::int64_t Number(const char* sql, std::optional<std::int64_t> argument = std::nullopt);

  World& world_;
  Ledger& ledger_;
  const Bounds& bounds_;
  const Planted planted_;
  FaultyVfs vfs_;
  std::set<std::string> artifacts_;
  absl::Duration commit_time_ = absl::Milliseconds(1);
  Dice settling_dice_;
  std::size_t max_queued_bytes_;
  std::unique_ptr<Process> process_;
  std::vector<std::unique_ptr<Process>> graves_;  // processes that died a moment ago
  std::vector<std::shared_ptr<Wire>> wires_;
  std::map<std::string, const SimStream*> current_;  // worker -> the stream of its latest Welcome
};

}  // namespace pelab::sim
