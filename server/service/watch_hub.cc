#include "server/service/watch_hub.h"

#include <map>
#include <optional>
#include <utility>

#include "absl/time/time.h"
#include "core/base/mutex.h"
#include "core/rpc/status.h"
#include "server/limits.h"

namespace pelab::service {
namespace {

constexpr absl::Duration kInterval = absl::Milliseconds(200);

bool IsOver(const v1::SweepUpdate& update) {
  return update.sweep().state() == v1::SWEEP_STATE_FINISHED ||
         update.sweep().state() == v1::SWEEP_STATE_CANCELLED;
}

}  // namespace

// While an update is being written, only the latest further update is kept: a slow reader misses
// some.
class WatchHub::Watcher final : public grpc::ServerWriteReactor<v1::SweepUpdate> {
 public:
  explicit Watcher(std::string sweep) : sweep_(std::move(sweep)) {}

  void KeepAlive(std::shared_ptr<Watcher> self) { self_ = std::move(self); }
  const std::string& sweep() const { return sweep_; }

  void Offer(const v1::SweepUpdate& update) {
    std::string bytes = update.SerializeAsString();
    MutexLock lock(&mutex_);
    if (closing_ || bytes == last_) return;
    last_ = std::move(bytes);
    pending_ = update;
    if (!writing_) SendPending();
  }

  void Close(grpc::Status status) {
    MutexLock lock(&mutex_);
    if (closing_) return;
    closing_ = true;
    status_ = std::move(status);
    if (!writing_) FinishNow();
  }

  bool fresh() {
    MutexLock lock(&mutex_);
    return last_.empty() && !closing_;
  }
  bool gone() {
    MutexLock lock(&mutex_);
    return closing_;
  }

  void OnWriteDone(bool ok) override {
    MutexLock lock(&mutex_);
    writing_ = false;
    if (ok && pending_) return SendPending();
    if (!ok) closing_ = true;
    if (closing_) FinishNow();
  }
  void OnCancel() override { Close(grpc::Status::CANCELLED); }
  void OnDone() override { const std::shared_ptr<Watcher> self = std::move(self_); }

 private:
  void SendPending() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    outgoing_ = *std::move(pending_);
    pending_.reset();
    writing_ = true;
    StartWrite(&outgoing_);
  }
  void FinishNow() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (finished_) return;
    finished_ = true;
    Finish(status_);
  }

  const std::string sweep_;
  std::shared_ptr<Watcher> self_;
  Mutex mutex_;
  v1::SweepUpdate outgoing_ ABSL_GUARDED_BY(mutex_);
  std::optional<v1::SweepUpdate> pending_ ABSL_GUARDED_BY(mutex_);
  std::string last_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::Status status_ ABSL_GUARDED_BY(mutex_);
};

WatchHub::WatchHub(Snapshot snapshot, Version version)
    : snapshot_(std::move(snapshot)), version_(std::move(version)), thread_([this] { Run(); }) {}

WatchHub::~WatchHub() { Stop(); }

grpc::ServerWriteReactor<v1::SweepUpdate>* WatchHub::Watch(const std::string& sweep) {
  // Without make_shared, whose memory the hub's weak pointers would keep: it is freed on the thread
  // of gRPC that has used it last.
  const std::shared_ptr<Watcher> watcher(new Watcher(sweep));
  watcher->KeepAlive(watcher);
  MutexLock lock(&mutex_);
  if (stopping_) {
    watcher->Close({grpc::StatusCode::UNAVAILABLE, "the coordinator is shutting down"});
  } else if (watchers_.size() >= limits::kWatchers) {
    watcher->Close({grpc::StatusCode::RESOURCE_EXHAUSTED, "too many clients watch sweeps"});
  } else {
    watchers_.push_back(watcher);
    added_ = true;
  }
  return watcher.get();
}

void WatchHub::Stop() {
  std::vector<std::weak_ptr<Watcher>> watchers;
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    watchers.swap(watchers_);
  }
  for (const auto& each : watchers) {
    const auto watcher = each.lock();
    if (watcher == nullptr) continue;
    watcher->Close({grpc::StatusCode::UNAVAILABLE, "the coordinator is shutting down"});
  }
  if (thread_.joinable()) thread_.join();
}

void WatchHub::Run() {
  std::uint64_t seen = 0;
  for (;;) {
    {
      MutexLock lock(&mutex_);
      const auto wake = [this]()
                            ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_ || added_; };
      mutex_.AwaitFor(wake, kInterval);
      if (stopping_) return;
      added_ = false;
      std::erase_if(watchers_, [](const auto& each) {
        const auto watcher = each.lock();
        return watcher == nullptr || watcher->gone();
      });
    }
    const std::uint64_t version = version_();
    Serve(version != seen);
    seen = version;
  }
}

// New watchers get their first snapshot. The others get one if something changed.
void WatchHub::Serve(bool changed) {
  std::vector<std::weak_ptr<Watcher>> watchers;
  {
    MutexLock lock(&mutex_);
    watchers = watchers_;
  }
  std::map<std::string, absl::StatusOr<v1::SweepUpdate>> snapshots;
  for (const auto& each : watchers) {
    const auto watcher = each.lock();
    if (watcher == nullptr || (!changed && !watcher->fresh())) continue;
    auto found = snapshots.find(watcher->sweep());
    if (found == snapshots.end()) {
      found = snapshots.emplace(watcher->sweep(), snapshot_(watcher->sweep())).first;
    }
    const absl::StatusOr<v1::SweepUpdate>& update = found->second;
    if (!update.ok()) {
      watcher->Close(rpc::ToGrpc(update.status()));
      continue;
    }
    watcher->Offer(*update);
    if (IsOver(*update)) watcher->Close(grpc::Status::OK);
  }
}

}  // namespace pelab::service
