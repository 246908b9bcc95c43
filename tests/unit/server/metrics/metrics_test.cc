// What the coordinator counts, and how what it knows becomes samples.
#include <gmock/gmock.h>
#include <grpcpp/support/status_code_enum.h>
#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/metrics/calls.h"
#include "server/metrics/coordinator_metrics.h"
#include "server/metrics/events.h"

namespace pelab::metrics {
namespace {

using testing::HasSubstr;
using testing::Not;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kSlower = 10;  // how many times as long something may take
#else
constexpr int kSlower = 1;
#endif

absl::Duration ProcessorTime() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return absl::DurationFromTimespec(time);
}

template <typename Counted>
std::string TextOf(const Counted& counted) {
  Scrape scrape;
  counted.AddTo(scrape);
  return scrape.Text();
}

store::EventStored Epoch(store::EventStored::Status status) {
  store::EventStored event;
  event.status = status;
  event.epoch_seconds = 0.1;
  return event;
}

store::EventStored End(state::Outcome outcome, state::ErrorKind error) {
  store::EventStored event;
  event.status = store::EventStored::kStored;
  event.change = std::make_shared<const store::JobChange>(
      store::JobChange{.outcome = outcome, .error = error});
  return event;
}

std::vector<store::ApplyResult> Results(const std::vector<store::EventStored>& events) {
  std::vector<store::ApplyResult> results;
  for (const store::EventStored& event : events) {
    results.emplace_back(store::WriteResult(event));
  }
  return results;
}

TEST(Events, CountsAttemptsWhoseJobsAreQueuedAnew) {
  Events events;
  const store::SliceStored two{.superseded = {1, 2}};
  const store::SliceStored one{.superseded = {3}};
  for (const store::WriteResult& result :
       {store::WriteResult(two), store::WriteResult(store::SweepStored{.first = one}),
        store::WriteResult(store::SweepExtended{.jobs = one}),
        store::WriteResult(store::Retried{.jobs = one}),
        store::WriteResult(store::Analyzed{.jobs = one}),
        store::WriteResult(store::RoundBegun{.sweep = {.jobs = one}})}) {
    events.Committed(absl::Milliseconds(1), std::vector<store::ApplyResult>{result});
  }
  EXPECT_THAT(TextOf(events), HasSubstr("{outcome=\"superseded\",error=\"none\"} 7\n"));
}

TEST(Events, CountsWhatIsNewlyStored) {
  Events events;
  std::vector<store::ApplyResult> results =
      Results({Epoch(store::EventStored::kStored), Epoch(store::EventStored::kStored),
               Epoch(store::EventStored::kDuplicate), Epoch(store::EventStored::kSuperseded),
               End(state::Outcome::kFailed, state::ErrorKind::kOutOfMemory),
               End(state::Outcome::kLost, state::ErrorKind::kNone),
               End(state::Outcome::kLost, state::ErrorKind::kNone)});
  results.emplace_back(absl::InvalidArgumentError("this one write is refused"));
  results.emplace_back(store::WriteResult(store::WorkerStored{}));
  events.Committed(absl::Milliseconds(1), results);
  const std::string text = TextOf(events);
  EXPECT_THAT(text, HasSubstr("\npelab_epochs_stored_total 2\n"));
  EXPECT_THAT(text, HasSubstr("{outcome=\"failed\",error=\"out_of_memory\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("{outcome=\"lost\",error=\"none\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("{outcome=\"succeeded\",error=\"none\"} 0\n"))
      << "increase() needs a sample before the first event";
  EXPECT_THAT(text, Not(HasSubstr("error=\"io\"")));
}

TEST(Events, EveryOutcomeAndErrorHasItsPlace) {
  Events events;
  events.Committed(absl::ZeroDuration(),
                   Results({End(state::Outcome::kSuperseded, state::ErrorKind::kStalled),
                            End(state::Outcome::kSucceeded, state::ErrorKind::kBadSpec)}));
  EXPECT_THAT(TextOf(events), HasSubstr("{outcome=\"superseded\",error=\"stalled\"} 1\n"));
  EXPECT_THAT(TextOf(events), HasSubstr("{outcome=\"succeeded\",error=\"bad_spec\"} 1\n"));
}

TEST(Events, TimesOfCommitsAndWaitsAreInTheirBuckets) {
  Events events;
  events.Committed(absl::Milliseconds(5), Results({}));
  events.Committed(absl::Milliseconds(600), absl::ResourceExhaustedError("the disk is full"));
  events.Dispatched(absl::Milliseconds(20));
  events.Dispatched(absl::Hours(2));
  const std::string text = TextOf(events);
  EXPECT_THAT(text, HasSubstr("commit_duration_seconds_bucket{le=\"0.0025\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("commit_duration_seconds_bucket{le=\"0.005\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("commit_duration_seconds_bucket{le=\"1\"} 2\n"))
      << "a commit that fails takes its time too";
  EXPECT_THAT(text, HasSubstr("commit_duration_seconds_sum 0.605\n"));
  EXPECT_THAT(text, HasSubstr("dispatch_wait_seconds_bucket{le=\"0.1\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("dispatch_wait_seconds_bucket{le=\"3600\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("dispatch_wait_seconds_bucket{le=\"14400\"} 2\n"));
}

class CallsTest : public testing::Test {
 protected:
  Calls calls_{*access::Methods::Build()};
};

TEST_F(CallsTest, CountsByMethodAndCode) {
  const char* const submit = "/pelab.v1.Sweeps/Submit";
  calls_.Ended(submit, grpc::OK, absl::Milliseconds(30));
  calls_.Ended(submit, grpc::OK, absl::Milliseconds(3));
  calls_.Ended(submit, grpc::INVALID_ARGUMENT, absl::Milliseconds(1));
  calls_.Refused(submit, grpc::PERMISSION_DENIED);
  calls_.Ended(submit, 99, absl::Milliseconds(1));
  const std::string text = TextOf(calls_);
  EXPECT_THAT(text, HasSubstr("{method=\"Sweeps/Submit\",code=\"OK\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("{method=\"Sweeps/Submit\",code=\"INVALID_ARGUMENT\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("{method=\"Sweeps/Submit\",code=\"PERMISSION_DENIED\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("{method=\"Sweeps/Submit\",code=\"UNKNOWN\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("seconds_count{method=\"Sweeps/Submit\"} 4\n"))
      << "a refused call has no duration";
  EXPECT_THAT(text, HasSubstr("bucket{method=\"Sweeps/Submit\",le=\"0.01\"} 3\n"));
}

TEST_F(CallsTest, StreamsHaveNoDuration) {
  calls_.Ended("/pelab.v1.Sweeps/WatchSweep", grpc::CANCELLED, absl::Hours(1));
  const std::string text = TextOf(calls_);
  EXPECT_THAT(text, HasSubstr("{method=\"Sweeps/WatchSweep\",code=\"CANCELLED\"} 1\n"));
  EXPECT_THAT(text, Not(HasSubstr("pelab_rpc_duration_seconds_count")));
}

// Otherwise a client could make up as many series as it likes.
TEST_F(CallsTest, UnknownMethodsAreNotCounted) {
  calls_.Ended("/pelab.v1.Sweeps/Invented", grpc::UNIMPLEMENTED, absl::Milliseconds(1));
  calls_.Refused("", grpc::UNAUTHENTICATED);
  EXPECT_THAT(TextOf(calls_), Not(HasSubstr("{")));
}

TEST(CoordinatorMetrics, SlotsWorkersAndGpus) {
  sched::SchedulerFigures figures;
  figures.slots["gpu"] = {.busy = 3, .free = 1, .closed = 4};
  figures.waiting["any"] = 17;
  figures.workers.push_back(
      {.name = "w1",
       .connected = true,
       .loads =
           {{.device = "cuda:0", .busy_percent = 87, .memory_used = 1000, .energy_joules = 12.5},
            {.device = "cuda:1", .memory_used = 2000}},
       .errors = {{.device = "cuda:1", .xid = 79, .times = 3}}});
  figures.workers.push_back({.name = "w2", .quarantined = true});
  figures.gpu_seconds = {{"", 3}, {"alice", 12.5}, {"shared", 0.25}};
  Scrape scrape;
  AddScheduler(scrape, figures);
  const std::string text = scrape.Text();
  EXPECT_THAT(text, HasSubstr("pelab_slots{state=\"busy\",kind=\"gpu\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("pelab_slots{state=\"free\",kind=\"gpu\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("pelab_slots{state=\"closed\",kind=\"gpu\"} 4\n"));
  EXPECT_THAT(text, HasSubstr("pelab_slots_wanted{kind=\"any\"} 17\n"));
  EXPECT_THAT(text, HasSubstr("\npelab_worker_streams 1\n"));
  EXPECT_THAT(text, HasSubstr("pelab_worker_quarantined{worker=\"w1\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("pelab_worker_quarantined{worker=\"w2\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("pelab_gpu_busy_ratio{worker=\"w1\",gpu=\"cuda:0\"} 0.87"));
  EXPECT_THAT(text, Not(HasSubstr("pelab_gpu_busy_ratio{worker=\"w1\",gpu=\"cuda:1\"}")))
      << "it does not say how busy it is";
  EXPECT_THAT(text, HasSubstr("pelab_gpu_memory_used_bytes{worker=\"w1\",gpu=\"cuda:1\"} 2000\n"));
  EXPECT_THAT(text, HasSubstr("counter\npelab_gpu_energy_joules_total{worker=\"w1\","
                              "gpu=\"cuda:0\"} 12.5\n# HELP"));
  EXPECT_THAT(text, HasSubstr("counter\npelab_gpu_xid_errors_total{worker=\"w1\",gpu=\"cuda:1\","
                              "xid=\"79\"} 3\n# HELP"));
  EXPECT_THAT(text, HasSubstr("pelab_gpu_seconds_total{principal=\"alice\"} 12.5\n"
                              "pelab_gpu_seconds_total{principal=\"shared\"} 3.25\n"));
}

TEST(CoordinatorMetrics, QueuesAndTheirAllocations) {
  Scrape scrape;
  AddQueues(scrape, {{.name = "cpu", .paused = true},
                     {.name = "gpu", .allocations = {{{"running", 2}, {"waiting", 0}}}}});
  const std::string text = scrape.Text();
  EXPECT_THAT(text, HasSubstr("gauge\npelab_allocations{queue=\"gpu\",state=\"running\"} 2\n"
                              "pelab_allocations{queue=\"gpu\",state=\"waiting\"} 0\n# HELP"))
      << "nobody knows about those of cpu";
  EXPECT_THAT(text, HasSubstr("pelab_allocation_queue_paused{queue=\"cpu\"} 1\n"
                              "pelab_allocation_queue_paused{queue=\"gpu\"} 0\n"));
}

TEST(CoordinatorMetrics, SingleSweepsOnlyIfAsked) {
  db::SweepFigures figures;
  figures.jobs = {{"queued", 5}};
  figures.sweeps = {{"active", 1}};
  figures.live.push_back({.sweep_id = 3, .name = "table \"1\"", .jobs = {{"queued", 5}}});
  Scrape without;
  AddSweeps(without, figures, /*each=*/false);
  EXPECT_THAT(without.Text(), HasSubstr("pelab_jobs{state=\"queued\"} 5\n"));
  EXPECT_THAT(without.Text(), HasSubstr("pelab_sweeps{state=\"active\"} 1\n"));
  EXPECT_THAT(without.Text(), Not(HasSubstr("pelab_sweep_jobs")));
  Scrape with;
  AddSweeps(with, figures, /*each=*/true);
  EXPECT_THAT(
      with.Text(),
      HasSubstr("pelab_sweep_jobs{sweep=\"3\",name=\"table \\\"1\\\"\",state=\"queued\"} 5\n"));
}

// A thousand workers with a GPU each cost at most 20 ms of processor time; that does not depend on
// what else the machine does.
TEST(CoordinatorMetrics, AThousandWorkersAreQuick) {
  sched::SchedulerFigures figures;
  for (int i = 0; i < 1000; ++i) {
    auto& worker = figures.workers.emplace_back();
    worker.name = absl::StrCat("gpu-host-", i, ".cluster.example.org");
    worker.connected = true;
    worker.loads.push_back({.device = "cuda:0",
                            .busy_percent = i % 101,
                            .memory_used = std::uint64_t{1} << 36,
                            .energy_joules = 1e6 + 0.125 * i});
    worker.errors.push_back({.device = "cuda:0", .xid = 31, .times = 1});
  }
  absl::Duration best = absl::InfiniteDuration();
  for (int round = 0; round < 10; ++round) {
    const absl::Duration began = ProcessorTime();
    Scrape scrape;
    AddScheduler(scrape, figures);
    EXPECT_GT(scrape.Text().size(), 100'000u);
    best = std::min(best, ProcessorTime() - began);
  }
  RecordProperty("milliseconds", absl::StrCat(absl::ToDoubleMilliseconds(best)));
  EXPECT_LT(best, kSlower * absl::Milliseconds(20));
}

}  // namespace
}  // namespace pelab::metrics
