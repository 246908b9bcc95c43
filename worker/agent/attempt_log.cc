#include "worker/agent/attempt_log.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/mutex.h"
#include "worker/agent/limits.h"

namespace pelab::agent {
namespace {

constexpr std::size_t kTailBytes = 4 << 10;

void KeepEnd(std::size_t bytes, std::string* text) {
  if (text->size() > bytes) text->erase(0, text->size() - bytes);
}

}  // namespace

AttemptLog::AttemptLog(std::string path) : path_(std::move(path)) {}

void AttemptLog::Append(absl::string_view bytes) {
  MutexLock lock(&mutex_);
  Store(bytes);
  total_ += bytes.size();
  pending_.append(bytes.data(), bytes.size());
  KeepEnd(limits::kLogPendingBytes, &pending_);
  tail_.append(bytes.data(), bytes.size());
  KeepEnd(kTailBytes, &tail_);
}

void AttemptLog::Store(absl::string_view bytes) {
  if (file_bytes_ >= limits::kLogFileBytes) {
    std::rename(path_.c_str(), absl::StrCat(path_, ".1").c_str());
    fd_.Reset();
    file_bytes_ = 0;
  }
  if (!fd_) {
    absl::StatusOr<UniqueFd> opened = OpenForAppend(path_);
    if (!opened.ok()) return;
    fd_ = *std::move(opened);
  }
  if (WriteAll(fd_.get(), bytes, path_).ok()) file_bytes_ += bytes.size();
}

bool AttemptLog::Take(std::size_t max_bytes, std::uint64_t* offset, std::string* data) {
  MutexLock lock(&mutex_);
  if (pending_.empty()) return false;
  *offset = total_ - pending_.size();
  *data = pending_.substr(0, max_bytes);
  pending_.erase(0, data->size());
  return true;
}

std::string AttemptLog::Tail() const {
  MutexLock lock(&mutex_);
  return tail_;
}

}  // namespace pelab::agent
