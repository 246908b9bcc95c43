#include "worker/agent/checkpoint_transfer.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/file.h"
#include "core/base/ids.h"
#include "core/base/log.h"
#include "core/base/regular_file.h"
#include "core/base/sha256.h"
#include "core/base/status.h"
#include "core/base/unique_fd.h"
#include "core/rpc/backoff.h"
#include "worker/agent/checkpoint_file.h"

namespace pelab::agent {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kFirstPause = absl::Milliseconds(100);
constexpr std::size_t kReadBytes = 1 << 20;

std::string LocalPath(const CheckpointPlace& place) {
  return absl::StrCat(place.job_dir, "/", kCheckpointName);
}

// True if the trainer would start from this checkpoint.
bool IsUsable(const absl::StatusOr<CheckpointFile>& file, const v1::Assignment& assignment) {
  return file.ok() && file->spec == assignment.spec_json() &&
         file->epoch <= assignment.max_start_epoch();
}

absl::Status Hash(const std::string& path, ArtifactFile* file) {
  PELAB_ASSIGN_OR_RETURN(const UniqueFd fd, OpenRegularFile(path));
  Sha256 hash;
  std::string buffer(kReadBytes, '\0');
  file->bytes = 0;
  while (true) {
    const ssize_t got = read(fd.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus(errno, absl::StrCat("cannot read ", path));
    if (got == 0) break;
    hash.Update({buffer.data(), static_cast<std::size_t>(got)});
    file->bytes += static_cast<std::uint64_t>(got);
  }
  file->sha256 = hash.FinishHex();
  return absl::OkStatus();
}

// If the trainer still runs, its line about the newer checkpoint is on its way.
absl::Status Replaced() {
  return absl::OutOfRangeError("the checkpoint is newer than what the trainer has told");
}

// Gives the current file a second name (a hard link). The trainer never changes the file, it
// replaces it.
absl::Status Freeze(const std::string& path, const std::string& name) {
  PELAB_RETURN_IF_ERROR(RemoveAll(name));
  if (link(path.c_str(), name.c_str()) == 0) return absl::OkStatus();
  std::error_code error;
  if (errno == ENOENT) {
    // Linux also answers ENOENT if the file is replaced at this very moment.
    if (fs::exists(path, error)) return Replaced();
    return absl::NotFoundError(absl::StrCat(path, " is gone"));
  }
  // Not every file system has hard links.
  fs::copy_file(path, name, error);
  return error ? ErrnoStatus(error.value(), absl::StrCat("cannot copy ", path)) : absl::OkStatus();
}

class Removed {
 public:
  explicit Removed(std::string path) : path_(std::move(path)) {}
  ~Removed() { std::remove(path_.c_str()); }
  Removed(const Removed&) = delete;

 private:
  const std::string path_;
};

bool IsWorthFetchingAgain(const absl::Status& status) {
  // RESOURCE_EXHAUSTED: too many downloads at once.
  return IsWorthRetrying(status) || absl::IsResourceExhausted(status);
}

// Moves the fetched checkpoint into place if it is the one that the coordinator named.
absl::Status Install(const CheckpointPlace& place, const std::string& fetched) {
  PELAB_ASSIGN_OR_RETURN(const CheckpointFile file, ReadCheckpointFile(fetched));
  const v1::Assignment& assignment = *place.assignment;
  if (file.spec != assignment.spec_json() || file.epoch != assignment.checkpoint().epoch()) {
    return absl::DataLossError(
        absl::StrCat("it is of epoch ", file.epoch, " of ",
                     file.spec == assignment.spec_json() ? "this job" : "another job"));
  }
  if (std::rename(fetched.c_str(), LocalPath(place).c_str()) != 0) {
    return ErrnoStatus(errno, absl::StrCat("cannot rename to ", LocalPath(place)));
  }
  return FsyncDirectory(place.job_dir);
}

}  // namespace

void FetchCheckpoint(const CheckpointPlace& place, absl::Duration patience) {
  const v1::Assignment& assignment = *place.assignment;
  const v1::StoredCheckpoint& stored = assignment.checkpoint();
  if (!assignment.has_checkpoint() || stored.epoch() > assignment.max_start_epoch()) return;
  const absl::StatusOr<CheckpointFile> local = ReadCheckpointFile(LocalPath(place));
  if (IsUsable(local, assignment) && local->epoch >= stored.epoch()) return;

  const std::string fetched = absl::StrCat(place.attempt_dir, "/", kCheckpointName);
  const Removed removed(fetched);
  const ArtifactFile file = {fetched, stored.sha256(), stored.bytes(), assignment.attempt_id(),
                             assignment.token()};
  const absl::Time give_up_at = absl::Now() + patience;
  rpc::Backoff backoff(kFirstPause, place.retry_cap, RandomUnit);
  absl::Status status = CreateDirectories(place.job_dir);
  if (status.ok()) status = place.artifacts->Get(file, place.stopped);
  while (IsWorthFetchingAgain(status) && !place.stopped() && absl::Now() < give_up_at) {
    place.pause(backoff.Next());
    status = place.artifacts->Get(file, place.stopped);
  }
  if (status.ok()) status = Install(place, fetched);
  if (place.stopped()) return;
  if (status.ok()) {
    spdlog::info("attempt {}: goes on from epoch {}, which another worker has reached",
                 assignment.attempt_id(), stored.epoch());
  } else {
    place.note(absl::StrCat("the checkpoint of epoch ", stored.epoch(), " could not be fetched: ",
                            status.message(), "; training starts without it"));
  }
}

CheckpointUploader::CheckpointUploader(CheckpointPlace place, absl::Duration interval, Spool spool)
    : place_(std::move(place)),
      interval_(interval),
      spool_(std::move(spool)),
      sent_(place_.assignment->checkpoint().epoch()),
      thread_([this] { Run(); }) {}

CheckpointUploader::~CheckpointUploader() { StopThread(); }

bool CheckpointUploader::StopThread() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
  MutexLock lock(&mutex_);
  return HasNews();
}

void CheckpointUploader::Offer(int epoch) {
  MutexLock lock(&mutex_);
  offered_ = std::max(offered_, epoch);
}

void CheckpointUploader::Run() {
  const auto give_up = [this] {
    MutexLock lock(&mutex_);
    return stopping_;
  };
  // A random first pause, so that the workers of a fleet do not all upload at once.
  absl::Duration pause = interval_ * (0.5 + RandomUnit() / 2);
  rpc::Backoff backoff(kFirstPause, place_.retry_cap, RandomUnit);
  while (true) {
    {
      MutexLock lock(&mutex_);
      const auto stopping = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_; };
      const auto work = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return stopping_ || HasNews();
      };
      mutex_.AwaitFor(stopping, pause);
      mutex_.Await(work);
      if (stopping_) return;
    }
    const absl::Status status = UploadNewest(absl::InfiniteFuture(), give_up);
    if (status.ok()) {
      backoff.Reset();
    } else {
      spdlog::debug("attempt {}: no checkpoint was uploaded: {}", place_.assignment->attempt_id(),
                    std::string(status.message()));
    }
    const bool again = IsWorthRetrying(status) || absl::IsOutOfRange(status);
    pause = again ? std::min(backoff.Next(), interval_) : interval_;
    if (status.ok() || again || refused_) continue;
    refused_ = true;
    place_.note(absl::StrCat("a checkpoint could not be uploaded: ", status.message(),
                             "; training goes on"));
  }
}

// OUT_OF_RANGE if the file is newer than the newest offered checkpoint.
absl::Status CheckpointUploader::UploadNewest(absl::Time until,
                                              const std::function<bool()>& give_up) {
  int offered = 0;
  {
    MutexLock lock(&mutex_);
    offered = offered_;
  }
  const std::string frozen = absl::StrCat(place_.attempt_dir, "/upload.safetensors");
  PELAB_RETURN_IF_ERROR(Freeze(LocalPath(place_), frozen));
  const Removed removed(frozen);
  PELAB_ASSIGN_OR_RETURN(const CheckpointFile checkpoint, ReadCheckpointFile(frozen));
  if (checkpoint.epoch > offered) return Replaced();
  ArtifactFile file = {frozen, "", 0, place_.assignment->attempt_id(), place_.assignment->token()};
  file.checkpoint = true;
  file.until = until;
  PELAB_RETURN_IF_ERROR(Hash(frozen, &file));
  PELAB_RETURN_IF_ERROR(place_.artifacts->Put(file, give_up));
  v1::Event event;
  event.mutable_checkpoint()->set_epoch(checkpoint.epoch);
  event.mutable_checkpoint()->set_sha256(file.sha256);
  event.mutable_checkpoint()->set_bytes(file.bytes);
  PELAB_RETURN_IF_ERROR(spool_(std::move(event)));
  MutexLock lock(&mutex_);
  sent_ = offered;
  return absl::OkStatus();
}

void CheckpointUploader::Finish(absl::Time until, bool persist) {
  if (!StopThread()) return;
  const auto over = [&] { return place_.stopped() || absl::Now() >= until; };
  rpc::Backoff backoff(kFirstPause, place_.retry_cap, RandomUnit);
  absl::Status status = absl::UnavailableError("");
  while (!over()) {
    status = UploadNewest(until, over);
    if (status.ok() || !persist || !IsWorthRetrying(status)) break;
    place_.pause(std::min(backoff.Next(), until - absl::Now()));
  }
  if (!status.ok() && !status.message().empty()) {
    place_.note(absl::StrCat("the last checkpoint stays on this host: ", status.message()));
  }
}

}  // namespace pelab::agent
