#include "tests/bench/load/fleet.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "core/rpc/channel.h"

namespace pelab::load {
namespace {

constexpr absl::Duration kWelcomeTime = absl::Minutes(1);
constexpr std::int64_t kStep = 1'000'000;  // step of the pace, in nanoseconds

bool Within(absl::Duration time, const std::function<bool()>& condition) {
  const absl::Time end = absl::Now() + time;
  while (!condition()) {
    if (absl::Now() > end) return false;
    absl::SleepFor(absl::Milliseconds(5));
  }
  return true;
}

}  // namespace

Fleet::Fleet(const FleetOptions& options, std::function<absl::Duration(int)> pace)
    : options_(options), next_(static_cast<std::size_t>(options.workers), kNever) {
  hooks_.pace = std::move(pace);
  hooks_.wake = [this](std::size_t index, std::int64_t when) {
    MutexLock lock(&mutex_);
    if (when >= next_[index]) return;  // an earlier tick is planned already, and asks again
    next_[index] = when;
    due_.emplace(when, index);
  };
}

Fleet::~Fleet() { Stop(); }

absl::Status Fleet::Start() {
  const absl::StatusOr<rpc::Address> address = rpc::ParseAddress(options_.address);
  if (!address.ok()) return address.status();
  const int connections = options_.channels == 0 ? options_.workers : options_.channels;
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  for (int i = 0; i < std::min(connections, options_.workers); ++i) {
    auto channel = rpc::CreateChannel(*address, {});
    if (!channel.ok()) return channel.status();
    channels.push_back(*std::move(channel));
  }
  for (int i = 0; i < options_.workers; ++i) {
    const auto index = static_cast<std::size_t>(i);
    workers_.push_back(std::make_unique<FakeWorker>(index, absl::StrCat(options_.name, "-", i),
                                                    options_.slots, options_.gpus,
                                                    channels[index % channels.size()], hooks_));
  }
  thread_ = std::thread([this] { Run(); });
  for (const auto& worker : workers_) worker->Start();
  Within(kWelcomeTime,
         [this] { return hooks_.welcomed.load() >= options_.workers || hooks_.broken.load() > 0; });
  if (hooks_.welcomed.load() >= options_.workers) return absl::OkStatus();
  if (hooks_.broken.load() > 0) {
    return absl::UnavailableError("the coordinator ended a session before its welcome");
  }
  return absl::DeadlineExceededError(absl::StrCat("only ", hooks_.welcomed.load(), " of ",
                                                  options_.workers, " workers were welcomed in ",
                                                  absl::FormatDuration(kWelcomeTime)));
}

void Fleet::Stop() {
  {
    MutexLock lock(&mutex_);
    if (stopping_) return;
    stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
  for (const auto& worker : workers_) worker->Leave();
  for (const auto& worker : workers_) worker->WaitUntilGone();
}

Latencies Fleet::TakeLatencies() {
  Latencies all;
  for (const auto& worker : workers_) worker->TakeLatencies(all);
  return all;
}

Latencies Fleet::TakeBeats() {
  Latencies all;
  for (const auto& worker : workers_) worker->TakeBeats(all);
  return all;
}

Latencies Fleet::Unanswered() {
  Latencies all;
  for (const auto& worker : workers_) worker->AddUnanswered(Now(), all);
  return all;
}

// Collects the workers that are due, each once; false if the fleet is stopping.
bool Fleet::TakeDue(std::vector<std::size_t>& due) {
  due.clear();
  const std::int64_t now = Now();
  MutexLock lock(&mutex_);
  if (stopping_) return false;
  while (!due_.empty() && due_.top().first <= now) {
    const auto [when, index] = due_.top();
    due_.pop();
    if (when != next_[index]) continue;  // replaced by an earlier tick
    next_[index] = kNever;
    due.push_back(index);
  }
  return true;
}

void Fleet::Run() {
  std::vector<std::size_t> due;
  while (TakeDue(due)) {
    if (due.empty()) {
      std::this_thread::sleep_for(std::chrono::nanoseconds(kStep));
      continue;
    }
    for (const std::size_t index : due) {
      const std::int64_t next = workers_[index]->Tick(Now());
      if (next != kNever) hooks_.wake(index, next);
    }
  }
}

}  // namespace pelab::load
