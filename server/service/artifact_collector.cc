#include "server/service/artifact_collector.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/time/clock.h"
#include "core/base/log.h"
#include "server/service/blocking.h"

namespace pelab::service {
namespace {

constexpr std::size_t kAskedAtOnce = 256;  // hashes per request to the writer thread
constexpr int kMostRounds = 16;            // attempts to make room, per call
constexpr int kMostWrites = 4;             // writes of the same bytes: others may take the room
// A backup holds all files. Meanwhile they are checked again at this interval.
constexpr absl::Duration kWhileBackedUp = absl::Seconds(1);

}  // namespace

void DroppedFiles::Add(const std::vector<std::string>& sha256s) {
  MutexLock lock(&mutex_);
  dropped_.insert(dropped_.end(), sha256s.begin(), sha256s.end());
}

std::vector<std::string> DroppedFiles::Take(absl::Duration timeout) {
  MutexLock lock(&mutex_);
  const auto some = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopped_ || !dropped_.empty();
  };
  mutex_.AwaitFor(some, timeout);
  return std::exchange(dropped_, {});
}

void DroppedFiles::Stop() {
  MutexLock lock(&mutex_);
  stopped_ = true;
}

bool DroppedFiles::stopped() const {
  MutexLock lock(&mutex_);
  return stopped_;
}

ArtifactCollector::ArtifactCollector(const Clock& clock, store::ArtifactFiles& files,
                                     store::Journal& journal, std::shared_ptr<DroppedFiles> dropped,
                                     absl::Duration grace)
    : clock_(clock),
      files_(files),
      journal_(journal),
      dropped_(std::move(dropped)),
      grace_(grace),
      thread_([this] { Run(); }) {}

ArtifactCollector::~ArtifactCollector() { Stop(); }

void ArtifactCollector::Stop() {
  dropped_->Stop();
  if (thread_.joinable()) thread_.join();
}

void ArtifactCollector::Run() {
  absl::Time next_folder = absl::Now() + grace_;
  int folder = 0;
  std::vector<std::string> waiting;
  while (!dropped_->stopped()) {
    const absl::Duration pause = next_folder - absl::Now();
    const std::vector<std::string> more =
        dropped_->Take(waiting.empty() ? pause : std::min(pause, kWhileBackedUp));
    waiting.insert(waiting.end(), more.begin(), more.end());
    if (files_.held()) {
      next_folder = std::max(next_folder, absl::Now() + kWhileBackedUp);
      continue;
    }
    Collect(std::exchange(waiting, {}));
    const absl::Time now = absl::Now();
    if (now < next_folder) continue;
    Collect(files_.Old(folder, now - grace_));
    folder = (folder + 1) % store::ArtifactFiles::kFolders;
    next_folder = now + grace_ / store::ArtifactFiles::kFolders;
  }
}

void ArtifactCollector::Collect(const std::vector<std::string>& sha256s) {
  for (std::size_t at = 0; at < sha256s.size() && !dropped_->stopped(); at += kAskedAtOnce) {
    store::FindUnused ask{.sha256s = {}, .now = absl::ToUnixMillis(clock_.Wall())};
    const std::size_t end = std::min(at + kAskedAtOnce, sha256s.size());
    for (std::size_t i = at; i < end; ++i) {
      if (files_.Consider(sha256s[i])) ask.sha256s.push_back(sha256s[i]);
    }
    if (ask.sha256s.empty()) continue;
    const auto answer = AppendAndWait(journal_, std::move(ask));
    // The disk is full or the coordinator is stopping. The walk will find these files again.
    if (!answer.ok()) return;
    for (const std::string& sha256 : std::get<store::Unused>(*answer).sha256s) {
      if (files_.RemoveConsidered(sha256)) spdlog::debug("removed {}: nothing names it", sha256);
    }
  }
}

void ArtifactCollector::MakeRoom(std::uint64_t bytes) {
  for (int round = 0; round < kMostRounds; ++round) {
    const std::uint64_t lacking = files_.Lacking(bytes);
    if (lacking == 0) return;
    const auto answer = AppendAndWait(journal_, store::DropCheckpoints{lacking});
    if (!answer.ok()) return;
    const auto& dropped = std::get<store::Unused>(*answer).sha256s;
    if (dropped.empty()) return;
    spdlog::info("gave up {} checkpoints: their space is needed for results", dropped.size());
    Collect(dropped);
  }
}

absl::Status ArtifactCollector::Write(store::ArtifactFiles::Upload& upload,
                                      absl::string_view bytes) {
  absl::Status status = upload.Write(bytes);
  for (int i = 1; i < kMostWrites && absl::IsResourceExhausted(status); ++i) {
    MakeRoom(bytes.size());
    status = upload.Write(bytes);
  }
  return status;
}

}  // namespace pelab::service
