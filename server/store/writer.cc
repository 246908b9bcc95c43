#include "server/store/writer.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/mutex.h"

namespace pelab::store {
namespace {

// After this pause without writes, work that nobody waits for is done.
constexpr absl::Duration kQuiet = absl::Seconds(1);
constexpr absl::Duration kLogFailuresEvery = absl::Seconds(30);
// Writing waits for a WAL checkpoint that is still running when the WAL has grown by
// `checkpoint_bytes` so many times since it began. Otherwise a disk that copies pages more slowly
// than events come would fill up with the WAL.
constexpr std::int64_t kMostBehind = 4;

// Whether somebody cannot continue before the commit: a submission, a slice of a sweep, an attempt
// for a free slot, or the end of an attempt, which frees a slot. Other events are frequent, and
// their senders do not wait for the acknowledgement.
bool IsHurried(const std::vector<Write>& writes) {
  const auto hurried = [](const Write& write) {
    const auto* event = std::get_if<AttemptEvent>(&write);
    return std::holds_alternative<SubmitSweep>(write) ||
           std::holds_alternative<ExpandSlice>(write) ||
           std::holds_alternative<CreateAttempt>(write) ||
           (event != nullptr && event->event->has_finished());
  };
  return std::any_of(writes.begin(), writes.end(), hurried);
}

// Waits must not notice when the wall clock is set.
absl::Duration Now() { return SystemClock::Instance().Monotonic(); }

}  // namespace

Writer::Writer(Store& store, const WriterOptions& options)
    : store_(store), options_(options), thread_([this] { Run(); }) {}

Writer::~Writer() { Stop(); }

absl::Status Writer::Append(std::vector<Write> writes, Done done, Urgency urgency) {
  Request request{std::move(writes), std::move(done)};
  request.bytes = ByteSize(request.writes);
  const bool hurried = IsHurried(request.writes);
  const bool is_long = std::any_of(request.writes.begin(), request.writes.end(), IsLong);
  MutexLock lock(&mutex_);
  if (stopping_) return absl::UnavailableError("the coordinator is shutting down");
  if (urgency == Urgency::kBounded && queued_bytes_ + request.bytes > options_.max_queued_bytes &&
      HasWork()) {
    return absl::ResourceExhaustedError(absl::StrCat("the coordinator has ", queued_bytes_,
                                                     " bytes of writes queued; at most ",
                                                     options_.max_queued_bytes, " are allowed"));
  }
  queued_bytes_ += request.bytes;
  (is_long ? long_ : queue_).push_back(std::move(request));
  hurried_ = hurried_ || hurried || queued_bytes_ >= options_.batch_bytes;
  if (hurried_) gathered_.Ring();
  return absl::OkStatus();
}

void Writer::Stop() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    gathered_.Ring();
  }
  if (thread_.joinable()) thread_.join();
}

// Waits for work and takes up to one batch of it: short requests, then at most one long one.
// Returns true with an empty batch if nothing came for a while and staged epochs may be left to
// move. Returns false when stopping and nothing is left. If the last commit was only a moment ago,
// there is a stream of writes, and it pays to wait for some more of them.
bool Writer::Take(std::vector<Request>& batch) {
  bool gather = false;
  {
    MutexLock lock(&mutex_);
    const auto some = [this]()
                          ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_ || HasWork(); };
    if (tidy_) {
      mutex_.Await(some);
    } else if (!mutex_.AwaitFor(some, last_commit_ + kQuiet - Now())) {
      return true;
    }
    gather = !stopping_ && !hurried_;
    gathered_.Reset();
  }
  // Do not hold the mutex here: every Append would wake this thread to check its condition.
  if (gather) gathered_.WaitFor(last_commit_ + options_.gather - Now());
  MutexLock lock(&mutex_);
  std::size_t bytes = 0;
  while (!queue_.empty() &&
         (batch.empty() || bytes + queue_.front().bytes <= options_.batch_bytes)) {
    bytes += queue_.front().bytes;
    batch.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  if (!long_.empty()) {
    bytes += long_.front().bytes;
    batch.push_back(std::move(long_.front()));
    long_.pop_front();
  }
  queued_bytes_ -= bytes;
  hurried_ = HasWork();
  return !batch.empty();
}

// Logs the first failure and then one now and then, because refused clients try again and again.
void Writer::Failed(const absl::Status& why) {
  const absl::Duration now = Now();
  if (failures_++ == 0) {
    failing_since_ = now;
    failure_logged_ = now;
    spdlog::error("{}; nothing is acknowledged until that works", std::string{why.message()});
    if (options_.on_change) options_.on_change(false);
  } else if (now - failure_logged_ >= kLogFailuresEvery) {
    failure_logged_ = now;
    spdlog::error("{}, for {} now; {} batches were refused", std::string{why.message()},
                  absl::FormatDuration(absl::Trunc(now - failing_since_, absl::Seconds(1))),
                  failures_);
  }
}

void Writer::Succeeded() {
  if (failures_ == 0) return;
  spdlog::info("the database is written again after {}, in which {} batches were refused",
               absl::FormatDuration(absl::Trunc(Now() - failing_since_, absl::Milliseconds(1))),
               failures_);
  failures_ = 0;
  if (options_.on_change) options_.on_change(true);
}

void Writer::Commit(std::vector<Request>& batch) {
  std::vector<Write> writes;
  for (Request& request : batch) {
    std::move(request.writes.begin(), request.writes.end(), std::back_inserter(writes));
    request.bytes = request.writes.size();
  }
  if (writes.empty()) {  // somebody only asks whether this thread works
    for (Request& request : batch) request.done(std::vector<ApplyResult>());
    return;
  }
  const absl::Duration began = Now();
  absl::StatusOr<std::vector<ApplyResult>> results = store_.Apply(writes);
  last_commit_ = Now();
  works_.store(results.ok(), std::memory_order_relaxed);
  if (options_.on_commit) options_.on_commit(last_commit_ - began, results);
  if (!results.ok()) {
    Failed(results.status());
    for (Request& request : batch) request.done(results.status());
    return;
  }
  Succeeded();
  commits_.fetch_add(1, std::memory_order_release);
  auto next = std::make_move_iterator(results->begin());
  for (Request& request : batch) {
    const auto end = next + static_cast<std::ptrdiff_t>(request.bytes);
    request.done(std::vector<ApplyResult>(next, end));
    next = end;
  }
}

void Writer::CheckpointIfDue() {
  const std::int64_t bytes = store_.WalBytes();
  // After a whole checkpoint, SQLite writes the WAL from its beginning again. A reader can prevent
  // that; then the WAL only grows.
  if (bytes < checkpointed_at_) checkpointed_at_ = 0;
  const std::int64_t grown = bytes - checkpointed_at_;
  if (grown >= kMostBehind * options_.checkpoint_bytes) store_.AwaitCheckpoint();
  if (store_.TakeCheckpointEnded()) {
    store_.Checkpoint(/*truncate=*/false);  // copies the pages that were written meanwhile
  } else if (grown >= options_.checkpoint_bytes && store_.BeginCheckpoint()) {
    checkpointed_at_ = bytes;
  }
}

void Writer::Run() {
  pthread_setname_np(pthread_self(), "writer");  // shown by top, perf and gdb
  for (;;) {
    std::vector<Request> batch;
    if (!Take(batch)) break;
    if (batch.empty()) {
      tidy_ = !store_.MoveEpochs();
      continue;
    }
    Commit(batch);
    tidy_ = false;
    CheckpointIfDue();
  }
  while (store_.MoveEpochs()) {
  }
  store_.Checkpoint(/*truncate=*/true);
}

}  // namespace pelab::store
