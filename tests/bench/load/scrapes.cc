// The cost of a scrape of GET /metrics: its time, and its effect on acknowledgements of epoch
// events from many workers with GPUs. Parts without and with scrapes take turns, so that both see
// the same machine.
#include <httplib.h>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "tests/bench/load/scenario.h"

namespace pelab::load {
namespace {

constexpr absl::Duration kScrapesPatience = absl::Minutes(5);
constexpr int kEndlessJob = 100'000;  // epochs, so that no job ends during the measurement
constexpr int kPairs = 5;             // of parts without and with scrapes
constexpr int kScrapes = 10;          // in each part that has any

// The times that a text contains another.
int CountIn(const std::string& text, const std::string& of) {
  int count = 0;
  for (auto at = text.find(of); at != std::string::npos; at = text.find(of, at + 1)) ++count;
  return count;
}

class Scraper {
 public:
  explicit Scraper(int port) : client_("127.0.0.1", port) { client_.set_keep_alive(true); }

  // GPUs in the answer whose energy is known; -1: no answer.
  int Scrape() {
    const std::int64_t began = Now();
    const httplib::Result result = client_.Get("/metrics");
    times_.Add(static_cast<double>(Now() - began) / 1e6);
    if (!result || result->status != 200) return -1;
    bytes_ = result->body.size();
    return CountIn(result->body, "\npelab_gpu_energy_joules_total{");
  }
  Latencies& times() { return times_; }
  std::size_t bytes() const { return bytes_; }

 private:
  httplib::Client client_;
  Latencies times_;
  std::size_t bytes_ = 0;
};

// Sleeps for the time, or scrapes evenly over it.
void Part(absl::Duration time, int gpus, Scraper* scraper, Report& report) {
  const absl::Time began = absl::Now();
  for (int i = 0; scraper != nullptr && i < kScrapes; ++i) {
    absl::SleepFor(began + time * i / kScrapes - absl::Now());
    const int found = scraper->Scrape();
    if (found != gpus) {
      report.Fail(absl::StrCat("a scrape has ", found, " GPUs, not ", gpus));
      return;
    }
  }
  absl::SleepFor(began + time - absl::Now());
}

absl::Status MeasureScrapes(const Options& options, Bench& bench, Report& report) {
  const int slots = options.workers * options.slots;
  PELAB_ASSIGN_OR_RETURN(const int port, bench.HttpPort());
  PELAB_ASSIGN_OR_RETURN(const v1::SubmitResponse sweep,
                         bench.Submit(Document("scrapes", 0, slots, kEndlessJob)));
  PELAB_RETURN_IF_ERROR(
      bench.AwaitExpanded(static_cast<std::int64_t>(sweep.sweep_id()), kScrapesPatience));
  const absl::Duration interval = absl::Seconds(slots / options.rate);
  Fleet fleet({.address = bench.server().address(),
               .workers = options.workers,
               .slots = options.slots,
               .channels = options.channels,
               .gpus = true},
              [interval](int) { return interval; });
  PELAB_RETURN_IF_ERROR(fleet.Start());
  const WorkerHooks& counters = fleet.counters();
  Scraper first(port);
  const bool begun = Await(kScrapesPatience, [&] {
    absl::SleepFor(absl::Milliseconds(500));
    return counters.assigned.load() >= slots && first.Scrape() == slots;
  });
  if (!begun) return absl::DeadlineExceededError("not every worker got a job and said hello");
  absl::SleepFor(absl::Seconds(3));  // excludes the aftermath of connecting and assigning
  fleet.TakeLatencies();
  Scraper scraper(port);
  Latencies without;
  Latencies with;
  const std::int64_t began = Now();
  const std::int64_t acknowledged = counters.epochs_acknowledged.load();
  bench.BeginCpu();
  for (int i = 0; i < kPairs; ++i) {
    Part(options.time, slots, nullptr, report);
    without.Merge(fleet.TakeLatencies());
    Part(options.time, slots, &scraper, report);
    with.Merge(fleet.TakeLatencies());
  }
  const double seconds = static_cast<double>(Now() - began) / 1e9;
  report.Add("scrape of /metrics", scraper.times(), options.workers > 1000 ? "" : "<= 20");
  report.Add("its size", static_cast<double>(scraper.bytes()) / 1024, "KiB");
  report.Add("epoch events a second, acknowledged",
             static_cast<double>(counters.epochs_acknowledged.load() - acknowledged) / seconds,
             "events/s", absl::StrCat(options.rate));
  report.Add("acknowledgement while nobody scrapes", without);
  report.Add("acknowledgement with scrapes", with, "as without");
  bench.ReportCpu(report);
  return EndSessions(fleet, bench, report);
}

}  // namespace

absl::Status RunScrapes(const Options& options, Report& report) {
  if (!AllowWorkers(options, report)) return absl::OkStatus();
  PELAB_ASSIGN_OR_RETURN(const auto bench, Bench::Start(options, {"--http", "127.0.0.1:0"}));
  report.Note(absl::StrCat(options.workers, " sessions with ", options.slots, " GPUs, ",
                           options.rate, " epochs/s in all; ", kPairs, " times ",
                           absl::FormatDuration(options.time), " without scrapes and as long with ",
                           kScrapes));
  return MeasureScrapes(options, *bench, report);
}

}  // namespace pelab::load
