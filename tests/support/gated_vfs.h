// SQLite's file system for the disk, with a gate: while it is shut, nothing is copied into a
// database itself, so that a WAL checkpoint does not end. The WAL is written all the same.
#pragma once

#include <sqlite3.h>

#include "absl/base/thread_annotations.h"
#include "core/base/mutex.h"

namespace pelab {

// One object at a time; it must outlive the connections that use it. Thread-safe.
class GatedVfs {
 public:
  static constexpr char kName[] = "gated";

  GatedVfs() : vfs_(*sqlite3_vfs_find(nullptr)) {
    vfs_.zName = kName;
    vfs_.xOpen = OpenFile;
    only_ = this;
    sqlite3_vfs_register(&vfs_, /*makeDflt=*/0);
  }
  ~GatedVfs() { sqlite3_vfs_unregister(&vfs_); }
  GatedVfs(const GatedVfs&) = delete;
  GatedVfs& operator=(const GatedVfs&) = delete;

  void Shut() { Set(false); }
  void Open() { Set(true); }

 private:
  static int OpenFile(sqlite3_vfs*, const char* path, sqlite3_file* file, int flags, int* out) {
    sqlite3_vfs* const disk = sqlite3_vfs_find(nullptr);
    const int code = disk->xOpen(disk, path, file, flags, out);
    if (code != SQLITE_OK || (flags & SQLITE_OPEN_MAIN_DB) == 0) return code;
    const MutexLock lock(&only_->mutex_);
    if (only_->of_disk_ == nullptr) {
      only_->of_disk_ = file->pMethods;
      only_->gated_ = *file->pMethods;
      only_->gated_.xWrite = Write;
    }
    file->pMethods = &only_->gated_;
    return code;
  }
  static int Write(sqlite3_file* file, const void* data, int bytes, sqlite3_int64 at) {
    const sqlite3_io_methods* of_disk = nullptr;
    {
      const MutexLock lock(&only_->mutex_);
      const auto open = []() ABSL_NO_THREAD_SAFETY_ANALYSIS { return only_->open_; };
      only_->mutex_.Await(open);
      of_disk = only_->of_disk_;
    }
    return of_disk->xWrite(file, data, bytes, at);
  }
  void Set(bool open) {
    const MutexLock lock(&mutex_);
    open_ = open;
  }

  inline static GatedVfs* only_ = nullptr;  // SQLite calls functions without an object

  sqlite3_vfs vfs_;
  Mutex mutex_;
  const sqlite3_io_methods* of_disk_ ABSL_GUARDED_BY(mutex_) = nullptr;
  sqlite3_io_methods gated_{};  // constant once a file is open
  bool open_ ABSL_GUARDED_BY(mutex_) = true;
};

}  // namespace pelab
