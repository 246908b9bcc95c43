// A pool of read-only connections; each is used by one thread at a time. Thread-safe.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "core/base/mutex.h"
#include "core/db/read/reader.h"

namespace pelab::db {

class ReaderPool {
 public:
  explicit ReaderPool(std::string path) : path_(std::move(path)) {}

  // Returns its connection to the pool when destroyed.
  class Lease {
   public:
    Lease(ReaderPool& pool, std::unique_ptr<Reader> reader)
        : pool_(&pool), reader_(std::move(reader)) {}
    Lease(Lease&&) = default;
    ~Lease() {
      if (reader_) pool_->Return(std::move(reader_));
    }
    Reader* operator->() const { return reader_.get(); }
    Reader& operator*() const { return *reader_; }

   private:
    ReaderPool* pool_;
    std::unique_ptr<Reader> reader_;
  };

  absl::StatusOr<Lease> Take() {
    {
      MutexLock lock(&mutex_);
      if (!idle_.empty()) {
        Lease lease(*this, std::move(idle_.back()));
        idle_.pop_back();
        return lease;
      }
    }
    absl::StatusOr<std::unique_ptr<Reader>> reader = Reader::Open(path_);
    if (!reader.ok()) return reader.status();
    return Lease(*this, *std::move(reader));
  }

 private:
  static constexpr std::size_t kMaxIdle = 16;

  void Return(std::unique_ptr<Reader> reader) {
    MutexLock lock(&mutex_);
    if (idle_.size() < kMaxIdle) idle_.push_back(std::move(reader));
  }

  const std::string path_;
  Mutex mutex_;
  std::vector<std::unique_ptr<Reader>> idle_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pelab::db
