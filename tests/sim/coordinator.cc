#include "tests/sim/coordinator.h"

#include <SQLiteCpp/SQLiteCpp.h>

#include <algorithm>
#include <deque>
#include <utility>

#include "absl/strings/match.h"
#include "core/base/status.h"
#include "core/db/check/check.h"
#include "core/experiment/declaration.h"
#include "core/experiment/stored_analyses.h"
#include "server/service/expander.h"
#include "server/service/sweeps_service.h"
#include "server/store/database.h"
#include "server/stored_sweep.h"
#include "tests/sim/people.h"
#include "tests/sim/process.h"
#include "tests/sim/truth.h"

namespace pelab::sim {
namespace {

constexpr char kOwnSha256[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
constexpr std::uint64_t kOwnBytes = 34;
constexpr char kOwnEncoding[] =
    R"({"format":1,"kind":"encoding","name":"decay","methods":["distance_bias"],"options":[]})";
constexpr absl::Duration kRetryStart = absl::Seconds(1);
constexpr absl::Duration kRetrySlice = absl::Milliseconds(500);
constexpr absl::Duration kLongestStall = absl::Seconds(3);

// A new, unused database.
const FaultyVfs::Image& NewDatabase() {
  static const FaultyVfs::Image* const image = [] {
    FaultyVfs vfs;
    (void)store::Store::Open(kPath, {.vfs = vfs.name()});
    return new FaultyVfs::Image(vfs.Save());
  }();
  return *image;
}

// The override by which pelab submit declares the file that such a document names.
experiment::Override OwnFile() {
  auto declared = experiment::ParseOwnEncoding(kOwnEncoding).encoding;
  declared.sha256 = kOwnSha256;
  declared.bytes = kOwnBytes;
  return {absl::StrCat("file:", kOwnPath), experiment::ToJson(declared)};
}

}  // namespace

SharedSweep Parsed(const std::string& document, const std::string& overrides_json) {
  static auto* const known = new std::map<std::pair<std::string, std::string>, SharedSweep>;
  SharedSweep& sweep = (*known)[{document, overrides_json}];
  if (sweep) return sweep;
  std::vector<experiment::Override> overrides = OverridesFromJson(overrides_json);
  if (absl::StrContains(document, kOwnPath)) overrides.push_back(OwnFile());
  sweep =
      std::make_shared<const experiment::Sweep>(*experiment::ParseSweep(document, overrides).sweep);
  return sweep;
}

// The coordinator's end of a wire.
class SimStream final : public service::WorkerSession {
 public:
  SimStream(Coordinator& coordinator, std::shared_ptr<Wire> wire)
      : WorkerSession(*coordinator.process_->context),
        coordinator_(coordinator),
        alive_(coordinator.process_->alive),
        wire_(std::move(wire)) {}

  void Receive(v1::WorkerMessage message) {
    inbox_.push_back(std::move(message));
    Read();
  }
  void Close(const absl::Status& status) override {
    if (closed_) return;
    closed_ = true;
    coordinator_.world_.Note("stream closed: ", std::string(status.message()));
    if (wire_) wire_->CloseDown();
    Let();
    coordinator_.world_.After(absl::Milliseconds(1), [self = shared_from_this(), this] {
      if (*alive_) Ended();
    });
  }

 private:
  void Let() {
    if (wire_) wire_->server = nullptr;
    wire_.reset();
  }
  void Send(v1::CoordinatorMessage message) override {
    if (closed_) return;
    for (const v1::Ack& ack : message.acks().acks()) {
      if (ack.superseded()) continue;
      coordinator_.ledger_.Told(worker_, ack.attempt_id());
      coordinator_.ledger_.Acknowledged(ack.attempt_id(), ack.sequence());
    }
    if (message.has_assignment()) Assigned(message.assignment());
    for (const v1::Assignment& assignment : message.pack().assignments()) Assigned(assignment);
    if (message.has_welcome()) {
      coordinator_.current_[worker_] = this;
      for (const v1::HeldAnswer& held : message.welcome().held()) {
        if (held.accepted()) {
          coordinator_.ledger_.Told(worker_, held.attempt_id());
          coordinator_.ledger_.Acknowledged(held.attempt_id(), held.acknowledged());
        }
      }
    }
    wire_->SendDown(std::move(message));
  }
  void Assigned(const v1::Assignment& assignment) {
    coordinator_.ledger_.Told(worker_, assignment.attempt_id());
    if (assignment.pe() != "own") return;
    coordinator_.ledger_.ToldOfFile();
    if (fetches_files_) return;
    coordinator_.world_.Violate(absl::StrCat("worker ", worker_, " fetches no files and gets job ",
                                             assignment.job_id(), ", which needs one"));
  }
  void ReadOn() override {
    reading_ = true;
    coordinator_.world_.After(absl::ZeroDuration(), [self = shared_from_this(), this] {
      if (*alive_) Read();
    });
  }
  void Read() {
    while (reading_ && !closed_ && !inbox_.empty()) {
      const auto whole = std::make_shared<v1::WorkerMessage>(std::move(inbox_.front()));
      v1::WorkerMessage& message = *whole;
      inbox_.pop_front();
      if (message.has_hello() && worker_.empty()) OnHello(*message.mutable_hello());
      if (message.has_goodbye()) coordinator_.ledger_.Left(worker_);
      if (message.has_heartbeat() && coordinator_.current_[worker_] == this) {
        for (const v1::HeldAttempt& held : message.heartbeat().held()) {
          coordinator_.ledger_.Heard(worker_, held);
        }
      }
      reading_ = false;
      if (Handle(whole)) reading_ = true;
    }
  }

  void OnHello(v1::Hello& hello) {
    worker_ = hello.worker_id();
    const auto& features = hello.features();
    fetches_files_ = std::find(features.begin(), features.end(), "files") != features.end();
    if (hello.protocol() == 1 && hello.protocol_max() == 0) coordinator_.ledger_.OldHello(worker_);
    if (coordinator_.planted_.believes_in_files && !fetches_files_) hello.add_features("files");
  }

  Coordinator& coordinator_;
  const std::shared_ptr<const bool> alive_;
  std::shared_ptr<Wire> wire_;
  std::string worker_;
  bool fetches_files_ = false;
  std::deque<v1::WorkerMessage> inbox_;
  bool reading_ = true;
  bool closed_ = false;
};

Coordinator::Coordinator(World& world, Ledger& ledger, const Bounds& bounds, std::uint64_t seed,
                         const Planted& planted)
    : world_(world),
      ledger_(ledger),
      bounds_(bounds),
      planted_(planted),
      vfs_(seed),
      settling_dice_(world.DiceFor("settling")),
      max_queued_bytes_(world.Chance(0.2) ? 4000 : 64 << 20) {
  if (bounds_.queued_bytes) max_queued_bytes_ = *bounds_.queued_bytes;
  vfs_.Load(NewDatabase());
  ledger_.SetSchedulerDelay(kLongestStall + absl::Seconds(1));
}

Coordinator::~Coordinator() {
  BreakWires(/*quietly=*/true);
  if (process_) *process_->alive = false;
}

// Processes ------------------------------------------------------------------------------------

void Coordinator::Start() {
  if (process_) return;
  vfs_.Restart();
  const absl::Status started = StartProcess();
  if (started.ok()) return world_.Note("coordinator started");
  world_.Note("coordinator cannot start: ", std::string(started.message()));
  process_.reset();
  world_.After(kRetryStart, [this] { Start(); });
}

absl::Status Coordinator::StartProcess() {
  store::StoreOptions options;
  options.vfs = vfs_.name();
  options.artifact_bytes = [this](const std::string& sha256) {
    const std::uint64_t bytes = RecordedBytes(sha256).value_or(kWeightsBytes);
    return HasArtifact(sha256) ? std::optional(bytes) : std::nullopt;
  };
  options.staging = bounds_.staging;
  options.budgets = bounds_.budgets;
  auto store = store::Store::Open(kPath, options);
  if (!store.ok()) return store.status();
  ledger_.Compare(**store);
  process_ = std::make_unique<Process>();
  Process& p = *process_;
  p.store = *std::move(store);
  p.executor = std::make_unique<SimExecutor>(world_, p.alive);
  p.journal = std::make_unique<SimJournal>(
      SimJournal::Parts{world_, ledger_, vfs_, *p.store, planted_, p.alive,
                        [this] {
                          BreakWires(/*quietly=*/world_.Chance(0.5));
                          Bury(world_.Between(absl::Milliseconds(100), absl::Seconds(10)));
                        },
                        &commit_time_, max_queued_bytes_, bounds_.batch});
  p.scheduler = std::make_unique<sched::Scheduler>(
      world_, *p.executor, *p.journal,
      sched::SchedulerOptions{
          .lease = bounds_.lease,
          .longest_silence = planted_.no_silence_sweep ? absl::InfiniteDuration() : bounds_.silence,
          .token = [this] { return world_.Draw(std::uint64_t{1} << 62) + 1; }});
  p.context = std::make_unique<service::FleetContext>(
      service::FleetContext{world_, *p.executor, *p.scheduler, *p.journal, bounds_.heartbeat(),
                            bounds_.lease, [this] { return world_.Unit(); }});
  std::vector<store::ExpandingSweep> expanding;
  PELAB_RETURN_IF_ERROR(p.store->Recover(
      [&](const store::RecoveredSweep& sweep) { p.scheduler->SetSweepSettings(sweep.settings); },
      [&](const store::ReadyJob& job) { p.scheduler->AddReady(job); },
      [&](const store::OpenAttempt& open) { p.scheduler->RecoverOpen(open); },
      [&](const store::ExpandingSweep& sweep) { expanding.push_back(sweep); }));
  if (!planted_.no_lease_sweep) p.scheduler->Start();
  for (const store::ExpandingSweep& sweep : expanding) {
    Expand(sweep.sweep_id,
           WithSeeds(Parsed(sweep.document, sweep.overrides_json), sweep.extensions),
           sweep.expanded_cells);
  }
  return absl::OkStatus();
}

// The process is dead. Keep it for a moment, because its code may be running right now.
void Coordinator::Bury(absl::Duration outage) {
  if (!process_) return;
  world_.Note("coordinator is dead");
  *process_->alive = false;
  if (!vfs_.down()) vfs_.Crash();
  // Only a planted bug answers before it writes.
  if (process_->journal->before()) vfs_.Load(*process_->journal->before());
  current_.clear();
  graves_.push_back(std::move(process_));
  world_.After(absl::ZeroDuration(), [this] { graves_.clear(); });
  world_.After(std::max(outage, absl::Milliseconds(1)), [this] { Start(); });
}

void Coordinator::BreakWires(bool quietly) {
  for (const auto& wire : wires_) {
    if (!wire->server) continue;
    wire->server = nullptr;
    wire->server_closed = nullptr;
    if (!quietly) wire->CloseDown();
  }
  wires_.clear();
}

void Coordinator::Kill(absl::Duration outage) {
  if (!process_) return;
  BreakWires(/*quietly=*/false);
  Bury(outage);
}

void Coordinator::LosePower(double survivors, absl::Duration outage) {
  if (!process_) return;
  BreakWires(/*quietly=*/true);
  vfs_.LosePower(survivors);
  Bury(outage);
}

void Coordinator::Stop(absl::Duration outage) {
  if (!process_) return;
  process_->journal->Stop();
  BreakWires(/*quietly=*/false);
  Bury(outage);
}

void Coordinator::Stall(absl::Duration time) {
  if (process_) process_->executor->Stall(std::min(time, kLongestStall));
}

// Workers --------------------------------------------------------------------------------------

std::shared_ptr<Wire> Coordinator::Connect(const Link& link) {
  if (!process_ || !link.whole()) return nullptr;
  auto wire = std::make_shared<Wire>(world_, link);
  const auto stream = std::make_shared<SimStream>(*this, wire);
  wire->server = [stream](v1::WorkerMessage message) { stream->Receive(std::move(message)); };
  wire->server_closed = [stream] { stream->Close(absl::CancelledError("the worker is gone")); };
  wire->host_answers = [this] { return up(); };
  std::erase_if(wires_, [](const auto& old) { return !old->server; });
  wires_.push_back(wire);
  return wire;
}

bool Coordinator::PutArtifact(const std::string& sha256) {
  if (!process_) return false;
  artifacts_.insert(sha256);
  return true;
}

// People ---------------------------------------------------------------------------------------

void Coordinator::Append(store::Write write, std::function<void(const store::WriteResult&)> then,
                         Answer answer) {
  if (!process_) return answer(absl::UnavailableError("no coordinator"));
  std::vector<store::Write> writes;
  writes.push_back(std::move(write));
  const absl::Status queued = process_->journal->Append(
      std::move(writes),
      [this, alive = process_->alive, then = std::move(then),
       answer](absl::StatusOr<std::vector<store::ApplyResult>> results) {
        absl::StatusOr<store::WriteResult> result =
            results.ok() ? std::move(results->front()) : results.status();
        if (result.ok()) then(*result);
        world_.After(absl::Milliseconds(2), [alive, answer, result = std::move(result)] {
          if (*alive) answer(result);
        });
      },
      store::Journal::Urgency::kBounded);
  if (!queued.ok()) answer(queued);
}

void Coordinator::Expand(std::int64_t sweep_id, SharedSweep sweep, std::uint64_t from) {
  if (from >= sweep->cells()) return;
  store::ExpandSlice slice = service::BuildSlice(sweep_id, *sweep, from, bounds_.slice, world_);
  const std::uint64_t next = slice.next;
  Append(
      std::move(slice),
      [this](const store::WriteResult& result) {
        process_->executor->Post([this, stored = std::get<store::SliceStored>(result)] {
          process_->scheduler->Expanded(stored);
        });
      },
      [=, this, alive = process_->alive](absl::StatusOr<store::WriteResult> result) {
        if (!result.ok()) {
          world_.After(kRetrySlice, [=, this] {
            if (*alive) Expand(sweep_id, sweep, from);
          });
          return;
        }
        const auto& stored = std::get<store::SliceStored>(*result);
        if (stored.applied) Expand(sweep_id, sweep, next);
        if (stored.resume_at) Expand(sweep_id, sweep, *stored.resume_at);
      });
}

void Coordinator::Submit(const std::string& document, const std::string& token, bool fresh,
                         int priority, Answer answer) {
  if (absl::Status status = service::CheckPriority(priority); !status.ok()) return answer(status);
  if (!absl::StrContains(document, kOwnPath)) {
    return SubmitStored(document, token, fresh, priority, std::move(answer));
  }
  Append(
      store::RecordFile{kOwnSha256, kOwnBytes, absl::ToUnixMillis(world_.Wall())},
      [](const store::WriteResult&) {},
      [=, this](absl::StatusOr<store::WriteResult> stored) {
        if (!stored.ok()) return answer(std::move(stored));
        SubmitStored(document, token, fresh, priority, answer);
      });
}

void Coordinator::SubmitStored(const std::string& document, const std::string& token, bool fresh,
                               int priority, Answer answer) {
  const SharedSweep sweep = Parsed(document);
  std::optional<store::ExpandSlice> first;
  if (world_.Chance(0.5)) first = service::BuildSlice(0, *sweep, 0, bounds_.slice, world_);
  const std::uint64_t next = first ? first->next : 0;
  Append(
      store::SubmitSweep{.name = sweep->name(),
                         .protocol = sweep->protocol(),
                         .document = document,
                         .file_name = "sweep.yaml",
                         .overrides_json = "[]",
                         .client_token = token,
                         .analyses_json = experiment::StoredAnalysesJson(sweep->analyses()),
                         .resources_json = R"({"device":"any","memory_bytes":0})",
                         .request_sha256 = absl::StrCat(PurposeId(document), " ", priority, fresh),
                         .priority = priority,
                         .fresh = fresh,
                         .cells = sweep->cells(),
                         .first = std::move(first),
                         .now = absl::ToUnixMillis(world_.Wall())},
      [this](const store::WriteResult& result) {
        process_->executor->Post([this, first = std::get<store::SweepStored>(result).first] {
          process_->scheduler->Expanded(first);
        });
      },
      [this, sweep, next, token, answer](absl::StatusOr<store::WriteResult> result) {
        if (result.ok()) {
          const auto& stored = std::get<store::SweepStored>(*result);
          if (stored.refusal != store::SweepStored::kNone) {
            return answer(absl::AlreadyExistsError("the token was used for another request"));
          }
          ledger_.AcknowledgedSweep(stored.sweep_id, token);
          if (!stored.repeated_token) Expand(stored.sweep_id, sweep, next);
        }
        answer(std::move(result));
      });
}

void Coordinator::Cancel(store::Write write, Answer answer) {
  const auto* sweep = std::get_if<store::CancelSweep>(&write);
  const std::int64_t sweep_id = sweep != nullptr ? sweep->sweep_id : 0;
  const auto ended = std::make_shared<bool>(false);  // stays false if the sweep had finished before
  Append(
      std::move(write),
      [=, this](const store::WriteResult& result) {
        *ended = Number("SELECT state = 'cancelled' FROM sweeps WHERE sweep_id = ?", sweep_id) != 0;
        process_->executor->Post([this, cancelled = std::get<store::Cancelled>(result)] {
          process_->scheduler->Cancelled(cancelled);
        });
      },
      [=, this](absl::StatusOr<store::WriteResult> result) {
        if (result.ok() && *ended) ledger_.AcknowledgedCancel(sweep_id);
        answer(std::move(result));
      });
}

void Coordinator::Analyze(std::int64_t sweep_id, std::vector<store::Analysis> analyses,
                          Answer answer) {
  if (!process_) return answer(absl::UnavailableError("no coordinator"));
  store::Analyze write{.jobs = {},
                       .sweep_id = sweep_id,
                       .analyses = std::move(analyses),
                       .now = absl::ToUnixMillis(world_.Wall())};
  SQLite::Statement rows(process_->store->database().connection(),
                         "SELECT DISTINCT job_id FROM sweep_jobs WHERE sweep_id = ?");
  rows.bind(1, sweep_id);
  while (rows.executeStep()) write.jobs.push_back(rows.getColumn(0).getInt64());
  if (write.jobs.empty()) return answer(store::WriteResult(store::Analyzed{}));
  Append(
      std::move(write),
      [this](const store::WriteResult& result) {
        process_->executor->Post([this, jobs = std::get<store::Analyzed>(result).jobs] {
          process_->scheduler->Expanded(jobs);
        });
      },
      std::move(answer));
}

// Queries --------------------------------------------------------------------------------------

std::int64_t Coordinator::Number(const char* sql, std::optional<std::int64_t> argument) {
  store::Database& database = process_->store->database();
  store::Query row = argument ? database.Run(sql, *argument) : database.Run(sql);
  return row.Step() ? row.Int(0) : 0;
}

bool Coordinator::Quiet() {
  if (!process_ || !process_->journal->idle()) return false;
  return Number(
             "SELECT (SELECT count(*) FROM sweeps WHERE state IN ('expanding', 'active')) + "
             "(SELECT count(*) FROM jobs WHERE state IN ('queued', 'assigned', 'running')) + "
             "(SELECT count(*) FROM attempts WHERE outcome IS NULL)") == 0;
}

bool Coordinator::SomeInQuarantine() const {
  if (!process_) return false;
  const std::vector<sched::WorkerStatus> workers = process_->scheduler->Workers();
  return std::any_of(workers.begin(), workers.end(), [](const sched::WorkerStatus& worker) {
    return worker.quarantine_left > absl::ZeroDuration();
  });
}

std::string Coordinator::Stuck() {
  if (!process_) return "no coordinator runs";
  return absl::StrCat(
      Number("SELECT count(*) FROM sweeps WHERE state IN ('expanding', 'active')"), " sweeps, ",
      Number("SELECT count(*) FROM jobs WHERE state = 'queued'"), " jobs that are queued, ",
      Number("SELECT count(*) FROM jobs WHERE state IN ('assigned', 'running')"),
      " that are assigned or run and ",
      Number("SELECT count(*) FROM attempts WHERE outcome IS NULL"), " attempts are open");
}

std::int64_t Coordinator::JobOf(std::int64_t sweep_id, std::uint64_t index) {
  if (!process_) return 0;
  const std::int64_t count = Number("SELECT count(*) FROM sweep_jobs WHERE sweep_id = ?", sweep_id);
  if (count == 0) return 0;
  SQLite::Statement row(process_->store->database().connection(),
                        "SELECT job_id FROM sweep_jobs WHERE sweep_id = ? LIMIT 1 OFFSET ?");
  row.bind(1, sweep_id);
  row.bind(2, static_cast<std::int64_t>(index % count));
  return row.executeStep() ? row.getColumn(0).getInt64() : 0;
}

std::int64_t Coordinator::Attempts() {
  return Number("SELECT coalesce(max(attempt_id), 0) FROM attempts");
}

std::size_t Coordinator::SlotsUsedAfter(std::int64_t attempt_id) {
  return Number(
      "SELECT count(DISTINCT worker_id || ' ' || slot) FROM attempts WHERE attempt_id > ?",
      attempt_id);
}

void Coordinator::CheckEnd() {
  process_->journal->Stop();
  ledger_.CheckEnd(*process_->store, Reading());
}

}  // namespace pelab::sim
