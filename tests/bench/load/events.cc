// Epoch events at a fixed rate from many worker connections at once: measures how long an
// acknowledgement takes, and which resources the coordinator uses.
#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "tests/bench/load/scenario.h"

namespace pelab::load {
namespace {

constexpr absl::Duration kEventsPatience = absl::Minutes(5);
constexpr int kManyEpochs = 100'000;  // so no job ends during the measurement

absl::Status MeasureEvents(const Options& options, Bench& bench, Report& report) {
  const int slots = options.workers * options.slots;
  PELAB_ASSIGN_OR_RETURN(const v1::SubmitResponse sweep,
                         bench.Submit(Document("events", 0, slots, kManyEpochs)));
  PELAB_RETURN_IF_ERROR(
      bench.AwaitExpanded(static_cast<std::int64_t>(sweep.sweep_id()), kEventsPatience));
  const absl::Duration interval = absl::Seconds(slots / options.rate);
  Fleet fleet({.address = bench.server().address(),
               .workers = options.workers,
               .slots = options.slots,
               .channels = options.channels},
              [interval](int) { return interval; });
  PELAB_RETURN_IF_ERROR(fleet.Start());
  const WorkerHooks& counters = fleet.counters();
  if (!Await(kEventsPatience, [&] { return counters.assigned.load() >= slots; })) {
    return absl::DeadlineExceededError(
        absl::StrCat("only ", counters.assigned.load(), " of ", slots, " jobs were assigned"));
  }
  absl::SleepFor(absl::Seconds(3));  // excludes the aftermath of connecting and assigning
  fleet.TakeLatencies();
  bench.BeginCpu();
  const std::int64_t began = Now();
  const std::int64_t acknowledged = counters.epochs_acknowledged.load();
  absl::SleepFor(options.time);
  const double seconds = static_cast<double>(Now() - began) / 1e9;
  report.Add("epoch events a second, acknowledged",
             static_cast<double>(counters.epochs_acknowledged.load() - acknowledged) / seconds,
             "events/s", absl::StrCat(options.rate));
  Latencies acks = fleet.TakeLatencies();
  report.Add("acknowledgement, from when the event was due", acks,
             options.workers > 1000 ? "" : "<= 50");
  bench.ReportCpu(report);
  bench.ReportMemory(report, options.workers > 1000 ? "<= 2048" : "<= 1024");
  return EndSessions(fleet, bench, report);
}

}  // namespace

absl::Status RunEvents(const Options& options, Report& report) {
  if (!AllowWorkers(options, report)) return absl::OkStatus();
  PELAB_ASSIGN_OR_RETURN(const auto bench, Bench::Start(options));
  report.Note(absl::StrCat(options.workers, " sessions with ", options.slots, " slots, ",
                           options.rate, " epochs/s in all, for ",
                           absl::FormatDuration(options.time)));
  return MeasureEvents(options, *bench, report);
}

}  // namespace pelab::load
