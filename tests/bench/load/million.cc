// A sweep of a million jobs next to other sweeps: the others must not notice it, and a restart must
// be quick.
#include <fcntl.h>

#include <map>

#include "absl/strings/str_cat.h"
#include "core/base/process.h"
#include "core/base/status.h"
#include "tests/bench/load/scenario.h"

namespace pelab::load {
namespace {

constexpr absl::Duration kMillionPatience = absl::Minutes(20);
constexpr int kLongEpochs = 100'000;  // of the sweep that runs during the whole scenario
constexpr std::uint64_t kSmallSeeds = std::uint64_t{1}
                                      << 40;  // the small sweeps use seeds from here on
constexpr int kSmallJobs = 4;
constexpr int kUrgent = 10;
constexpr absl::Duration kBetweenSmall = absl::Milliseconds(200);
constexpr int kStatusCalls = 20;

// Submits small urgent sweeps and records when each of their jobs reaches a worker.
class SmallSweeps {
 public:
  explicit SmallSweeps(Bench& bench) : bench_(bench) {}

  // Call it for every assignment of any fleet; it ignores jobs of other sweeps.
  void Assigned(const v1::Assignment& assignment, std::int64_t now) {
    const auto seed = static_cast<std::uint64_t>(assignment.seed());
    if (seed < kSmallSeeds) return;
    MutexLock lock(&mutex_);
    const auto began = began_.find((seed - kSmallSeeds) / kSmallJobs);
    if (began == began_.end()) return;
    to_start_.Add(static_cast<double>(now - began->second) / 1e6);
  }

  absl::Status SubmitOne() {
    std::uint64_t number = 0;
    {
      MutexLock lock(&mutex_);
      number = next_++;
      began_[number] = Now();
    }
    return bench_
        .Submit(Document(absl::StrCat("small", number), kSmallSeeds + number * kSmallJobs,
                         kSmallJobs, 1),
                kUrgent, &submits_)
        .status();
  }

  // Reports the latencies since the last call.
  void Report(const std::string& when, load::Report& report) {
    MutexLock lock(&mutex_);
    report.Add(absl::StrCat("small urgent sweep ", when, ": submit to start"), to_start_, "<= 20");
    report.Add(absl::StrCat("small urgent sweep ", when, ": submit answered"), submits_);
    to_start_.Clear();
    submits_.Clear();
  }

 private:
  Bench& bench_;
  Mutex mutex_;
  std::uint64_t next_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::uint64_t, std::int64_t> began_ ABSL_GUARDED_BY(mutex_);
  Latencies to_start_ ABSL_GUARDED_BY(mutex_);
  Latencies submits_;  // used only by the submitting thread
};

class Million {
 public:
  Million(const Options& options, Bench& bench, Report& report)
      : options_(options),
        bench_(bench),
        report_(report),
        small_(bench),
        // Long jobs send epochs at the requested rate; all other jobs take one second per epoch.
        fleet_({.address = bench.server().address(),
                .workers = options.workers,
                .slots = options.slots,
                .channels = options.channels},
               [&options](int epochs) {
                 return epochs == kLongEpochs ? absl::Seconds(Long(options) / options.rate)
                                              : absl::Seconds(1);
               }) {}

  absl::Status Run() {
    fleet_.OnAssignment(
        [this](const v1::Assignment& a, std::int64_t now) { small_.Assigned(a, now); });
    PELAB_RETURN_IF_ERROR(fleet_.Start());
    PELAB_RETURN_IF_ERROR(
        bench_.Submit(Document("long", 0, Long(options_), kLongEpochs), /*priority=*/20).status());
    Await(kMillionPatience, [this] {
      return static_cast<std::uint64_t>(fleet_.counters().assigned.load()) >= Long(options_);
    });
    PELAB_RETURN_IF_ERROR(Phase("before", [](double seconds) { return seconds > 10; }));
    PELAB_RETURN_IF_ERROR(SubmitMillion());
    PELAB_RETURN_IF_ERROR(Phase("afterwards", [](double seconds) { return seconds > 15; }));
    PELAB_RETURN_IF_ERROR(Status());
    bench_.ReportMemory(report_, "");
    const std::int64_t acknowledged = fleet_.counters().epochs_acknowledged.load();
    fleet_.Stop();
    PELAB_RETURN_IF_ERROR(RestartOnce(/*kill=*/false));
    PELAB_RETURN_IF_ERROR(RestartOnce(/*kill=*/true));
    return bench_.CheckGapless(acknowledged);
  }

 private:
  // Half of the slots run long jobs; the other half serves the small sweeps.
  static std::uint64_t Long(const Options& options) {
    return static_cast<std::uint64_t>(options.workers) * options.slots / 2;
  }

  // Submits small sweeps until `ends`, then reports the latencies of these and of the other sweeps.
  absl::Status Phase(const std::string& name, const std::function<bool(double seconds)>& ends) {
    fleet_.TakeLatencies();
    bench_.BeginCpu();
    const std::int64_t began = Now();
    const std::int64_t epochs = fleet_.counters().epochs_acknowledged.load();
    double seconds = 0;
    while (!ends(seconds)) {
      PELAB_RETURN_IF_ERROR(small_.SubmitOne());
      absl::SleepFor(kBetweenSmall);
      seconds = static_cast<double>(Now() - began) / 1e9;
    }
    Latencies acks = fleet_.TakeLatencies();
    report_.Add(
        absl::StrCat("events of other sweeps ", name),
        static_cast<double>(fleet_.counters().epochs_acknowledged.load() - epochs) / seconds,
        "events/s");
    report_.Add(absl::StrCat("acknowledgement ", name), acks, "<= 50");
    small_.Report(name, report_);
    bench_.ReportCpu(report_);
    return absl::OkStatus();
  }

  absl::Status SubmitMillion() {
    Latencies submit;
    const std::int64_t began = Now();
    PELAB_ASSIGN_OR_RETURN(
        const v1::SubmitResponse sweep,
        bench_.Submit(Document("million", 1'000'000, options_.jobs, 1), 0, &submit));
    report_.Add(absl::StrCat("submit of ", options_.jobs, " jobs acknowledged"), submit.Max(), "ms",
                "<= 1000");
    const std::string left = absl::StrCat(
        "SELECT count(*) FROM sweeps WHERE state = 'expanding' AND sweep_id = ", sweep.sweep_id());
    PELAB_RETURN_IF_ERROR(Phase("meanwhile", [&](double seconds) {
      const absl::StatusOr<std::int64_t> expanding = bench_.Ask(left);
      return (expanding.ok() && *expanding == 0) ||
             seconds > absl::ToDoubleSeconds(kMillionPatience);
    }));
    report_.Add(absl::StrCat("until all ", options_.jobs, " are queued"),
                static_cast<double>(Now() - began) / 1e9, "s", "<= 120");
    return absl::OkStatus();
  }

  // Times the real program, as people run it.
  absl::Status Status() {
    Latencies times;
    for (int i = 0; i < kStatusCalls; ++i) {
      UniqueFd null(open("/dev/null", O_WRONLY | O_CLOEXEC));
      const std::int64_t began = Now();
      PELAB_ASSIGN_OR_RETURN(Process status,
                             Process::Spawn({.argv = {options_.programs + "/pelab", "--server",
                                                      bench_.server().address(), "status"},
                                             .fds = {{null.get(), 1}}}));
      if (const ExitStatus ended = status.Wait(); !ended.ok()) {
        return absl::InternalError(absl::StrCat("pelab status ", ended.ToString()));
      }
      times.Add(static_cast<double>(Now() - began) / 1e6);
    }
    report_.Add("pelab status, the whole program", times, "<= 100");
    return absl::OkStatus();
  }

  // Measures the time from starting the process to the first job that a worker receives.
  absl::Status RestartOnce(bool kill) {
    if (kill) {
      bench_.server().Kill();
    } else {
      PELAB_RETURN_IF_ERROR(bench_.server().Stop());
    }
    const std::int64_t began = Now();
    PELAB_RETURN_IF_ERROR(bench_.StartAgain());
    std::atomic<std::int64_t> first{kNever};
    Fleet fleet({.address = bench_.server().address(), .name = kill ? "after-kill" : "after-stop"},
                [](int) { return absl::Seconds(1); });
    fleet.OnAssignment([&first](const v1::Assignment&, std::int64_t now) {
      std::int64_t none = kNever;
      first.compare_exchange_strong(none, now);
    });
    PELAB_RETURN_IF_ERROR(fleet.Start());
    if (!Await(absl::Minutes(5), [&first] { return first.load() != kNever; })) {
      return absl::DeadlineExceededError("no job was given after a restart");
    }
    report_.Add(absl::StrCat("restart after ", kill ? "SIGKILL" : "SIGTERM", " to first dispatch"),
                static_cast<double>(first.load() - began) / 1e9, "s", "<= 3");
    return absl::OkStatus();
  }

  const Options& options_;
  Bench& bench_;
  Report& report_;
  SmallSweeps small_;
  Fleet fleet_;
};

}  // namespace

absl::Status RunMillion(const Options& options, Report& report) {
  PELAB_ASSIGN_OR_RETURN(const auto bench, Bench::Start(options));
  report.Note(absl::StrCat(options.workers, " workers with ", options.slots,
                           " slots; half of them run jobs that report ", options.rate,
                           " epochs/s in all, the others jobs of a second"));
  return Million(options, *bench, report).Run();
}

}  // namespace pelab::load
