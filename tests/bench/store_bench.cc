// Durable epoch events per second through the store: one transaction per event against batches of
// 64, alternating.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "server/store/store.h"
#include "tests/support/events.h"

namespace {

using namespace pelab::store;  // NOLINT(google-build-using-namespace): a program of one file
using Clock = std::chrono::steady_clock;

constexpr int kJobs = 64;
constexpr int kRounds = 5;
constexpr int kEpochsARound = 20;

template <typename Result>
Result Do(Store& store, Write write) {
  const std::vector<Write> writes = {std::move(write)};
  auto results = store.Apply(writes);
  if (!results.ok() || !results->front().ok()) {
    std::fprintf(stderr, "the store refused a write: %s\n", results.status().ToString().c_str());
    std::exit(1);
  }
  return std::get<Result>(*std::move(results->front()));
}

// Makes jobs with one open attempt each, whose trainers have said hello.
std::vector<Assignment> Populate(Store& store) {
  Do<WorkerStored>(store, WorkerHello{.worker_id = "w", .slots_json = "[]"});
  const auto sweep = Do<SweepStored>(
      store,
      SubmitSweep{.name = "bench", .client_token = "t", .analyses_json = "[]", .cells = kJobs});
  ExpandSlice slice{.sweep_id = sweep.sweep_id, .from = 0, .next = kJobs, .last = true};
  for (int i = 0; i < kJobs; ++i) {
    slice.cells.push_back({.ordinal = static_cast<std::uint64_t>(i),
                           .key = "key" + std::to_string(i),
                           .spec_json = "{}",
                           .requirement = {.pe = "rope", .device_kind = "any"},
                           .epochs = 2 * kRounds * kEpochsARound});
  }
  std::vector<Assignment> assignments;
  for (const ReadyJob& job : Do<SliceStored>(store, slice).ready) {
    auto created = Do<AttemptCreated>(
        store, CreateAttempt{.job_id = job.job_id, .worker_id = "w", .device = "cpu", .token = 7});
    assignments.push_back(*created.assignment);
    Do<EventStored>(store, pelab::EventWrite(assignments.back().attempt_id, 7, 1,
                                             pelab::StartedEvent(0, 2 * kRounds * kEpochsARound)));
  }
  return assignments;
}

Write EpochOf(const Assignment& assignment, int epoch) {
  return pelab::EventWrite(assignment.attempt_id, 7, static_cast<std::uint64_t>(epoch) + 2,
                           pelab::OneWrong(epoch));
}

// Events per second for kEpochsARound epochs of every job, starting at epoch `first`.
double Measure(Store& store, const std::vector<Assignment>& assignments, int first,
               std::size_t batch) {
  const auto began = Clock::now();
  std::vector<Write> writes;
  for (int epoch = first; epoch < first + kEpochsARound; ++epoch) {
    for (const Assignment& assignment : assignments) {
      writes.push_back(EpochOf(assignment, epoch));
      if (writes.size() < batch) continue;
      if (!store.Apply(writes).ok()) std::exit(1);
      writes.clear();
    }
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - began).count();
  return kEpochsARound * static_cast<double>(assignments.size()) / seconds;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main() {
  const auto folder =
      std::filesystem::temp_directory_path() / ("pelab-bench-" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  {
    auto store = Store::Open((folder / "bench.db").string());
    if (!store.ok()) return 1;
    const std::vector<Assignment> assignments = Populate(**store);
    std::vector<double> single;
    std::vector<double> batched;
    for (int round = 0; round < kRounds; ++round) {
      single.push_back(Measure(**store, assignments, 2 * round * kEpochsARound, 1));
      batched.push_back(Measure(**store, assignments, (2 * round + 1) * kEpochsARound, kJobs));
    }
    std::printf(
        "durable epoch events/s, synchronous=FULL, median of %d alternating rounds\n"
        "  one transaction an event   %10.0f\n"
        "  batches of %d              %10.0f   ratio %.1f\n",
        kRounds, Median(single), kJobs, Median(batched), Median(batched) / Median(single));
  }
  std::filesystem::remove_all(folder);
  return 0;
}
