#include "core/http/connection_pool.h"

#include <system_error>

#include "absl/time/clock.h"
#include "core/base/log.h"

namespace pelab::http {
namespace {

constexpr absl::Duration kBetweenWarnings = absl::Minutes(1);

}  // namespace

std::thread MakeThread(std::function<void()> body) { return std::thread(std::move(body)); }

ConnectionPool::ConnectionPool(std::size_t threads, std::size_t waiting, ThreadMaker maker)
    : most_threads_(threads), most_waiting_(waiting), maker_(std::move(maker)) {
  threads_.push_back(maker_([this] { Run(); }));
}

// Where the user may have no further thread, those that exist serve the queue.
void ConnectionPool::AddThread() {
  try {
    threads_.push_back(maker_([this] { Run(); }));
  } catch (const std::system_error& error) {
    const absl::Time now = absl::Now();
    if (now - warned_ < kBetweenWarnings) return;
    warned_ = now;
    spdlog::warn("no further thread for HTTP: {}; {} serve it (ulimit -u, TasksMax=)", error.what(),
                 threads_.size());
  }
}

ConnectionPool::Taken ConnectionPool::enqueue(std::function<void()> serve) {
  bool more = false;
  {
    MutexLock lock(&mutex_);
    mutex_.Await([this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return queue_.size() < most_waiting_ || stopping_;
    });
    queue_.push_back(std::move(serve));
    more = queue_.size() > idle_ && threads_.size() < most_threads_;
  }
  if (more) AddThread();
  return static_cast<Taken>(true);
}

void ConnectionPool::shutdown() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

bool ConnectionPool::others_wait() {
  MutexLock lock(&mutex_);
  return queue_.size() > idle_;
}

void ConnectionPool::Run() {
  for (;;) {
    std::function<void()> serve;
    {
      MutexLock lock(&mutex_);
      ++idle_;
      mutex_.Await(
          [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !queue_.empty() || stopping_; });
      --idle_;
      if (queue_.empty()) return;
      serve = std::move(queue_.front());
      queue_.pop_front();
    }
    serve();
  }
}

}  // namespace pelab::http
