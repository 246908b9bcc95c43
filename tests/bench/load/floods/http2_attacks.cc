// Attacks below the calls: connections, and HTTP/2 that no gRPC library would send.
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/time/clock.h"
#include "pelab/v1/results.pb.h"
#include "tests/bench/load/floods/attack.h"
#include "tests/support/http2_peer.h"

namespace pelab::load {
namespace {

using testing_support::Http2Peer;

constexpr char kListJobsMethod[] = "/pelab.v1.Results/ListJobs";
constexpr char kSubmitMethod[] = "/pelab.v1.Sweeps/Submit";

UniqueFd ConnectTo(const std::string& path) {
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un name{.sun_family = AF_UNIX};
  path.copy(name.sun_path, sizeof(name.sun_path) - 1);
  if (fd && connect(fd.get(), reinterpret_cast<const sockaddr*>(&name), sizeof(name)) != 0) {
    fd.Reset();
  }
  return fd;
}

// Whether the other side has closed the connection. Takes what it has sent.
bool IsClosed(int fd) {
  char bytes[4096];
  ssize_t got = 0;
  do {
    got = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
  } while (got > 0);
  return got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

// Answers pings and takes what the server sends, so that the connection is not given up.
void StayAlive(Http2Peer& peer) {
  while (true) {
    if (!peer.Receive(/*wait_ms=*/100)) absl::SleepFor(absl::Milliseconds(10));
  }
}

}  // namespace

void SilentConnections(const Target& target, Tally& tally) {
  std::vector<UniqueFd> connections(2'000);
  while (true) {
    for (UniqueFd& fd : connections) {
      if (fd && !IsClosed(fd.get())) continue;
      if (fd) ++tally.refused;
      fd = ConnectTo(target.socket);
      if (fd) ++tally.connections;
    }
    absl::SleepFor(absl::Milliseconds(100));
  }
}

void ConnectAndClose(const Target& target, Tally& tally) {
  while (true) {
    if (ConnectTo(target.socket)) {
      ++tally.connections;
    } else {
      ++tally.refused;
    }
  }
}

void UnfinishedMessages(const Target& target, Tally& tally) {
  constexpr int kPeers = 10;
  constexpr int kCallsOfPeer = 30;
  constexpr std::uint32_t kWhole = 16 << 20;
  OnThreads(kPeers, [&](int) {
    Http2Peer peer(target.socket);
    tally.connections += peer.connected() ? 1 : 0;
    for (int i = 0; i < kCallsOfPeer; ++i) {
      ++tally.calls;
      tally.bytes +=
          static_cast<std::int64_t>(peer.SendPart(peer.Open(kSubmitMethod), kWhole, kWhole - 1));
    }
    StayAlive(peer);
  });
}

void UnreadAnswers(const Target& target, Tally& tally) {
  constexpr int kUnread = 1'000;
  v1::ListJobsRequest request;
  request.mutable_page()->set_limit(10'000);
  Http2Peer peer(target.socket, /*window=*/1);
  tally.connections += peer.connected() ? 1 : 0;
  for (int i = 0; i < kUnread; ++i) {
    peer.SendMessage(peer.Open(kListJobsMethod), request.SerializeAsString());
    ++tally.calls;
  }
  StayAlive(peer);
}

void RapidReset(const Target& target, Tally& tally) {
  while (true) {
    Http2Peer peer(target.socket);
    tally.connections += peer.connected() ? 1 : 0;
    peer.HoldBack();
    do {
      for (int i = 0; i < 100; ++i) {
        const std::uint32_t stream = peer.Open(kListJobsMethod);
        peer.SendEmptyMessage(stream);
        peer.Reset(stream);
        ++tally.calls;
      }
      while (peer.Receive(/*wait_ms=*/0)) continue;
    } while (peer.Flush());
    ++tally.refused;  // the connection was closed
  }
}

void EndlessHeaders(const Target& target, Tally& tally) {
  constexpr std::int64_t kMost = 256 << 20;
  Http2Peer peer(target.socket);
  tally.connections += peer.connected() ? 1 : 0;
  const std::uint32_t stream = peer.BeginHeaders();
  ++tally.calls;
  while (tally.bytes < kMost) {
    if (!peer.SendMoreHeaders(stream)) {
      ++tally.refused;
      return;
    }
    tally.bytes += 15 << 10;
  }
  StayAlive(peer);
}

}  // namespace pelab::load
