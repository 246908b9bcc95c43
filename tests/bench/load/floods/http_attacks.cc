// Attacks on the pages and their JSON API.
#include <arpa/inet.h>
#include <httplib.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <vector>

#include "absl/time/clock.h"
#include "core/base/unique_fd.h"
#include "tests/bench/load/floods/attack.h"

namespace pelab::load {
namespace {

// Begins to connect; whether it succeeds shows when something is sent.
UniqueFd ConnectToPort(int port) {
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  sockaddr_in name{.sin_family = AF_INET};
  name.sin_port = htons(static_cast<std::uint16_t>(port));
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (fd && connect(fd.get(), reinterpret_cast<const sockaddr*>(&name), sizeof(name)) != 0 &&
      errno != EINPROGRESS) {
    fd.Reset();
  }
  return fd;
}

}  // namespace

void HttpRequests(const Target& target, Tally& tally) {
  constexpr int kBrowsers = 64;
  OnThreads(kBrowsers, [&](int) {
    httplib::Client client("127.0.0.1", target.http_port);
    client.set_keep_alive(true);
    ++tally.connections;
    while (true) {
      const httplib::Result result = client.Get("/api/v1/sweeps/base/jobs?limit=10000");
      ++tally.calls;
      if (!result || result->status != 200) ++tally.refused;
    }
  });
}

void HttpDrips(const Target& target, Tally& tally) {
  constexpr char kBegin[] = "GET /api/v1/sweeps HTTP/1.1\r\nX-Drip: ";
  constexpr std::size_t kBeginBytes = sizeof(kBegin) - 1;
  struct Drip {
    UniqueFd fd;
    std::size_t sent = 0;
  };
  std::vector<Drip> drips(2'000);
  while (true) {
    for (Drip& drip : drips) {
      if (!drip.fd) {
        drip = {.fd = ConnectToPort(target.http_port)};
        if (drip.fd) ++tally.connections;
        continue;
      }
      const char byte = drip.sent < kBeginBytes ? kBegin[drip.sent] : 'x';
      const ssize_t sent = send(drip.fd.get(), &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent == 1) {
        ++drip.sent;
        ++tally.bytes;
      } else if (errno != EAGAIN) {
        ++tally.refused;
        drip.fd.Reset();
      }
    }
    absl::SleepFor(absl::Seconds(1));
  }
}

}  // namespace pelab::load
