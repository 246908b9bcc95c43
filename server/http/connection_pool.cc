#include "server/http/connection_pool.h"

namespace pelab::http {

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
  if (more) threads_.emplace_back([this] { Run(); });
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
