// What floods do to honest clients: for each attack, a coordinator of its own, a worker and a
// reader whose waits are measured before, during and after it, and a process that attacks.
#include <algorithm>
#include <filesystem>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/status.h"
#include "tests/bench/load/floods/attacker.h"
#include "tests/bench/load/floods/figures.h"
#include "tests/bench/load/floods/honest.h"
#include "tests/bench/load/scenario.h"

namespace pelab::load {
namespace {

constexpr absl::Duration kBeforeTime = absl::Seconds(5);
constexpr absl::Duration kSettleTime = absl::Seconds(1);
constexpr absl::Duration kLookInterval = absl::Milliseconds(50);  // at the coordinator's size
constexpr absl::Duration kRecoveryWindow = absl::Seconds(1);
constexpr absl::Duration kRecoveryTime = absl::Seconds(60);  // the longest that is waited for
constexpr absl::Duration kBaseTime = absl::Minutes(2);       // until the base sweep is expanded
constexpr std::uint64_t kBaseJobs = 10'000;                  // a page of the largest size
constexpr int kSmallSweeps = 50;                             // a page of the reader
constexpr int kEndlessEpochs = 100'000;
// A flood is ended when the coordinator has this much memory, before other programs have none.
constexpr double kTooManyMiB = 4096;
constexpr double kFarTooManyMiB = 8192;  // it is killed then

// One flood and its figures.
class Flood {
 public:
  Flood(const Options& options, const Attack& attack) : options_(options), attack_(attack) {
    figures_.name = attack.name;
    figures_.sessions_may_break = attack.fills_memory;
    if (!attack.bounded_from.empty() && !IsAtLeast(grpc::Version(), attack.bounded_from)) {
      figures_.unbounded_below = attack.bounded_from;
    }
  }

  absl::StatusOr<FloodFigures> Measure() {
    PELAB_RETURN_IF_ERROR(Prepare());
    Calm();
    PELAB_RETURN_IF_ERROR(Rage());
    Recover();
    figures_.peak_mib = std::max(figures_.peak_mib, PeakMiB(server().pid()));
    reader_.reset();
    worker_.reset();
    if (figures_.ended.empty()) PELAB_RETURN_IF_ERROR(server().Stop());
    return figures_;
  }

 private:
  ServerProcess& server() { return bench_->server(); }

  absl::Status Prepare() {
    PELAB_ASSIGN_OR_RETURN(
        bench_, Bench::Start(options_, {"--heartbeat", "100ms", "--http", "127.0.0.1:0"}));
    PELAB_ASSIGN_OR_RETURN(target_.http_port, bench_->HttpPort());
    PELAB_ASSIGN_OR_RETURN(const v1::SubmitResponse base,
                           bench_->Submit(Document(kBaseSweep, 0, kBaseJobs, kEndlessEpochs)));
    for (int i = 0; i < kSmallSweeps; ++i) {
      PELAB_RETURN_IF_ERROR(
          bench_->Submit(Document(absl::StrCat("small-", i), 0, 1, kEndlessEpochs)).status());
    }
    PELAB_RETURN_IF_ERROR(bench_->AwaitExpanded(base.sweep_id(), kBaseTime));
    PELAB_ASSIGN_OR_RETURN(worker_, HonestWorker::Start(server().address()));
    PELAB_ASSIGN_OR_RETURN(reader_, HonestReader::Start(server().address()));
    target_.socket = options_.directory + "/s";
    return absl::OkStatus();
  }

  void Calm() {
    absl::SleepFor(kSettleTime);
    worker_->Take();
    reader_->Take();
    absl::SleepFor(std::min(kBeforeTime, options_.time));
    figures_.worker_before = Waits::Of(worker_->Take());
    figures_.reader_before = Waits::Of(reader_->Take());
    figures_.resident_mib = SizeOf(server().pid()).resident_mib;
    reader_->TakeErrors();
  }

  absl::Status Rage() {
    const double cpu = CpuSeconds(server().pid());
    const std::int64_t began = Now();
    PELAB_ASSIGN_OR_RETURN(Attacker attacker, Attacker::Start(attack_, target_));
    for (const absl::Time end = absl::Now() + options_.time; absl::Now() < end;) {
      if (!Look()) break;
      absl::SleepFor(kLookInterval);
    }
    figures_.worker_during = Waits::Of(WaitsOf(*worker_));
    figures_.reader_during = Waits::Of(WaitsOf(*reader_));
    figures_.read_errors = reader_->TakeErrors();
    figures_.seconds = static_cast<double>(Now() - began) / 1e9;
    figures_.attacker_cpu = CpuSeconds(attacker.pid());
    figures_.coordinator_cpu = CpuSeconds(server().pid()) - cpu;
    PELAB_ASSIGN_OR_RETURN(figures_.tally, attacker.Stop());
    return absl::OkStatus();
  }

  // The waits since the last call, also those that have not ended.
  template <typename Client>
  static Latencies WaitsOf(Client& client) {
    Latencies all = client.Take();
    all.Merge(client.Unanswered());
    return all;
  }

  // Looks at the coordinator. False if the flood must end, or the coordinator has ended.
  bool Look() {
    if (const auto ended = server().Ended()) {
      figures_.ended = ended->ToString();
      return false;
    }
    const ProcessSize size = SizeOf(server().pid());
    figures_.most_threads = std::max(figures_.most_threads, size.threads);
    figures_.most_descriptors = std::max(figures_.most_descriptors, size.descriptors);
    figures_.peak_mib = std::max(figures_.peak_mib, size.resident_mib);
    if (size.resident_mib > kFarTooManyMiB) {
      server().Kill();
      figures_.ended =
          absl::StrCat("had ", static_cast<int>(size.resident_mib), " MiB and was killed");
      return false;
    }
    if (worker_->MendSession()) ++figures_.broken_sessions;
    return size.resident_mib < kTooManyMiB;
  }

  void Recover() {
    const std::int64_t ended = Now();
    while (Now() - ended < absl::ToInt64Nanoseconds(kRecoveryTime)) {
      const std::int64_t window = Now();
      const double seconds = static_cast<double>(window - ended) / 1e9;
      while (Now() - window < absl::ToInt64Nanoseconds(kRecoveryWindow)) {
        absl::SleepFor(kLookInterval);
        Look();
        if (!figures_.ended.empty()) return;
      }
      const Waits worker = Waits::Of(WaitsOf(*worker_));
      const Waits reader = Waits::Of(WaitsOf(*reader_));
      if (worker.count > 0 && IsRecovered(figures_.worker_before.p99, worker.p99) &&
          reader.count > 0 && IsRecovered(figures_.reader_before.p99, reader.p99)) {
        figures_.recovery = seconds;
        return;
      }
    }
  }

  const Options options_;
  const Attack& attack_;
  Target target_;
  FloodFigures figures_;
  std::unique_ptr<Bench> bench_;
  std::unique_ptr<HonestWorker> worker_;
  std::unique_ptr<HonestReader> reader_;
};

// The attacks of --only in the order of Attacks, or all.
absl::StatusOr<std::vector<Attack>> Chosen(const std::vector<std::string>& only) {
  for (const std::string& name : only) {
    if (FindAttack(name) != nullptr) continue;
    std::vector<std::string> known;
    for (const Attack& attack : Attacks()) known.push_back(attack.name);
    return absl::InvalidArgumentError(
        absl::StrCat("--only: unknown flood \"", name, "\"; known: ", absl::StrJoin(known, ", ")));
  }
  std::vector<Attack> chosen;
  for (const Attack& attack : Attacks()) {
    if (only.empty() || std::find(only.begin(), only.end(), attack.name) != only.end()) {
      chosen.push_back(attack);
    }
  }
  return chosen;
}

absl::StatusOr<FloodFigures> MeasureIn(const Options& options, const Attack& attack) {
  Options own = options;
  own.directory = absl::StrCat(options.directory, "/", attack.name);
  std::filesystem::create_directories(own.directory);
  // The log stays for whoever looks for a reason; databases would fill the disk.
  const absl::Cleanup tidy = [&own] {
    std::error_code ignored;
    std::filesystem::remove(own.directory + "/pelab.db", ignored);
    std::filesystem::remove(own.directory + "/pelab.db-wal", ignored);
    std::filesystem::remove_all(own.directory + "/pelab.db.artifacts", ignored);
  };
  return Flood(own, attack).Measure();
}

}  // namespace

absl::Status RunFloods(const Options& options, Report& report) {
  PELAB_ASSIGN_OR_RETURN(const std::vector<Attack> attacks, Chosen(options.only));
  if (!AllowOpenFiles(8192)) {
    report.Note("this user may not open 8192 files at once (ulimit -n): fewer connections came");
  }
  const FloodBounds bounds;
  std::vector<FloodFigures> floods;
  for (const Attack& attack : attacks) {
    std::fprintf(stderr, "pelab-load: %s: %s\n", attack.name.c_str(), attack.what.c_str());
    absl::StatusOr<FloodFigures> figures = MeasureIn(options, attack);
    if (!figures.ok()) {
      report.Fail(absl::StrCat(attack.name, ": ", figures.status().message()));
      continue;
    }
    const std::vector<std::string> broken = BrokenBounds(*figures, bounds);
    if (!broken.empty() && figures->unbounded_below.empty()) {
      report.Fail(absl::StrCat(attack.name, ": ", absl::StrJoin(broken, ", ")));
    }
    floods.push_back(*std::move(figures));
  }
  report.AddTable("floods", FloodTable(floods, bounds), FloodsJson(floods, bounds));
  report.Note(absl::StrCat("gRPC ", grpc::Version()));
  report.Note(absl::StrCat("waits in ms; bounds: ", bounds.peak_mib, " MiB, p99 of ", bounds.p99_ms,
                           " ms during a flood, recovery in ", bounds.recovery_seconds, " s"));
  return absl::OkStatus();
}

}  // namespace pelab::load
