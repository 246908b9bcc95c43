// Measures how many jobs per second go through all durable steps: assigned, started, each epoch,
// ended.
#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "tests/bench/load/scenario.h"

namespace pelab::load {
namespace {

constexpr absl::Duration kDispatchPatience = absl::Minutes(10);

absl::Status MeasureDispatch(const Options& options, Bench& bench, Report& report) {
  // All jobs are queued before the first worker connects, so that expansion is not measured.
  PELAB_ASSIGN_OR_RETURN(const v1::SubmitResponse sweep,
                         bench.Submit(Document("dispatch", 0, options.jobs, options.epochs)));
  const auto sweep_id = static_cast<std::int64_t>(sweep.sweep_id());
  PELAB_RETURN_IF_ERROR(bench.AwaitExpanded(sweep_id, kDispatchPatience));
  Fleet fleet({.address = bench.server().address(),
               .workers = options.workers,
               .slots = options.slots,
               .channels = options.channels},
              [](int) { return absl::ZeroDuration(); });
  const auto jobs = static_cast<std::int64_t>(options.jobs);
  const auto ended = [&fleet] { return fleet.counters().jobs_acknowledged.load(); };
  PELAB_RETURN_IF_ERROR(fleet.Start());
  // The first tenth is not counted, since workers are still connecting.
  Await(kDispatchPatience, [&] { return ended() >= jobs / 10; });
  bench.BeginCpu();
  const std::int64_t counted_from = ended();
  const std::int64_t began = Now();
  if (!Await(kDispatchPatience, [&] { return ended() >= jobs; })) {
    report.Fail(absl::StrCat("only ", ended(), " of ", jobs, " jobs ended in ",
                             absl::FormatDuration(kDispatchPatience)));
  }
  const double seconds = static_cast<double>(Now() - began) / 1e9;
  report.Add("jobs a second, assigned to ended, durable",
             static_cast<double>(jobs - counted_from) / seconds, "jobs/s", ">= 10,000");
  bench.ReportCpu(report);
  Latencies acks = fleet.TakeLatencies();
  report.Add("acknowledgement of an event", acks);
  bench.ReportMemory(report, "");
  fleet.Stop();
  return bench.CheckOnce(sweep_id, options.jobs, options.epochs);
}

}  // namespace

absl::Status RunDispatch(const Options& options, Report& report) {
  PELAB_ASSIGN_OR_RETURN(const auto bench, Bench::Start(options));
  report.Note(absl::StrCat(options.workers, " workers with ", options.slots, " slots, ",
                           options.jobs, " jobs of ", options.epochs, " epochs"));
  return MeasureDispatch(options, *bench, report);
}

}  // namespace pelab::load
