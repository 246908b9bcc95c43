// Attacks by calls that stay open.
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "core/base/sha256.h"
#include "pelab/v1/sweeps.grpc.pb.h"
#include "tests/bench/load/floods/attack.h"
#include "tests/bench/load/floods/worker_call.h"
#include "tests/support/http2_peer.h"

namespace pelab::load {
namespace {

using testing_support::Http2Peer;

constexpr char kPutMethod[] = "/pelab.v1.Fleet/PutArtifact";
constexpr char kBackupMethod[] = "/pelab.v1.Maintenance/Backup";

// Keeps the connection alive; returns when `until` has come.
void ReceiveUntil(Http2Peer& peer, absl::Time until) {
  while (absl::Now() < until) {
    if (!peer.Receive(/*wait_ms=*/100)) absl::SleepFor(absl::Milliseconds(10));
  }
}

// A stream that watches the base sweep and reads what comes.
class Watcher final : public grpc::ClientReadReactor<v1::SweepUpdate> {
 public:
  Watcher(v1::Sweeps::Stub& sweeps, Tally& tally) : tally_(tally) {
    request_.mutable_sweep()->set_sweep(kBaseSweep);
    sweeps.async()->WatchSweep(&context_, &request_, this);
    StartRead(&update_);
    StartCall();
  }
  void OnReadDone(bool ok) override {
    if (ok) StartRead(&update_);
  }
  void OnDone(const grpc::Status& status) override {
    if (!status.ok()) ++tally_.refused;
  }

 private:
  Tally& tally_;
  grpc::ClientContext context_;
  v1::WatchSweepRequest request_;
  v1::SweepUpdate update_;
};

}  // namespace

// Half of them send a header and no data, half send nothing at all.
void StandingUploads(const Target& target, Tally& tally) {
  constexpr int kStanding = 1'000;
  WorkerCall worker(Dial(target), "flood", /*slots=*/1);
  const auto assignment = worker.Begin();
  if (!assignment) CannotAttack("no job was assigned");
  std::thread([&] {
    while (worker.Beat(*assignment)) absl::SleepFor(absl::Seconds(1));
  }).detach();
  Http2Peer peer(target.socket);
  ++tally.connections;
  for (int i = 0; i < kStanding; ++i) {
    const std::uint32_t stream = peer.Open(kPutMethod);
    ++tally.calls;
    if (i % 2 == 1) continue;
    v1::PutArtifactRequest request;
    v1::ArtifactHeader* header = request.mutable_header();
    header->set_sha256(Sha256Hex(std::to_string(i)));
    header->set_bytes(1 << 20);
    header->set_attempt_id(assignment->attempt_id());
    header->set_token(assignment->token());
    peer.SendMessage(stream, request.SerializeAsString(), Http2Peer::Request::kGoesOn);
  }
  ReceiveUntil(peer, absl::InfiniteFuture());
}

// As many as the coordinator sends at a time, and more in vain. Each is asked for again.
void UnreadBackups(const Target& target, Tally& tally) {
  constexpr int kTries = 64;
  while (true) {
    Http2Peer peer(target.socket, /*window=*/1);
    ++tally.connections;
    for (int i = 0; i < kTries; ++i) {
      peer.SendEmptyMessage(peer.Open(kBackupMethod));
      ++tally.calls;
    }
    ReceiveUntil(peer, absl::Now() + absl::Seconds(5));
  }
}

void Watches(const Target& target, Tally& tally) {
  constexpr int kWatchChannels = 4;
  constexpr int kWatchesOfChannel = 500;
  std::deque<std::unique_ptr<v1::Sweeps::Stub>> stubs;
  std::vector<std::unique_ptr<Watcher>> watchers;
  for (int i = 0; i < kWatchChannels; ++i) {
    stubs.push_back(v1::Sweeps::NewStub(Dial(target)));
    ++tally.connections;
    for (int k = 0; k < kWatchesOfChannel; ++k) {
      watchers.push_back(std::make_unique<Watcher>(*stubs.back(), tally));
      ++tally.calls;
    }
  }
  absl::SleepFor(absl::InfiniteDuration());
}

}  // namespace pelab::load
