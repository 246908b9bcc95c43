// Clients that send an endless request, or send it byte by byte, must use up neither the memory nor
// all threads.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/unique_fd.h"
#include "server/http/http_server.h"
#include "tests/contract/http/http_fixture.h"

namespace pelab {
namespace {

class ConnectionTest : public HttpTest {
 protected:
  UniqueFd Dial() const {
    UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port()));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    return fd;
  }
  static bool Send(int fd, const std::string& text) {
    std::size_t sent = 0;
    while (sent < text.size()) {
      const ssize_t n = send(fd, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
      if (n <= 0) return false;
      sent += static_cast<std::size_t>(n);
    }
    return true;
  }
  static std::string Rest(int fd) {
    std::string all;
    char bytes[4096];
    for (ssize_t n = 0; (n = recv(fd, bytes, sizeof(bytes), 0)) > 0;) {
      all.append(bytes, static_cast<std::size_t>(n));
    }
    return all;
  }
};

TEST_F(ConnectionTest, HeadersEnd) {
  const UniqueFd fd = Dial();
  ASSERT_TRUE(Send(fd.get(), "GET /api/v1/ HTTP/1.1\r\nHost: 127.0.0.1\r\n"));
  const std::string headers = "X-More: " + std::string(1000, 'x') + "\r\n";
  std::size_t sent = 0;
  while (sent < (64 << 20) && Send(fd.get(), headers)) sent += headers.size();
  EXPECT_LT(sent, 32u << 20) << "what the two sockets hold, and no end of it";
  EXPECT_EQ(Ask("/api/v1/").status, 200);
}

TEST_F(ConnectionTest, TooManyHeadersAreRefused) {
  const UniqueFd fd = Dial();
  std::string request = "GET /api/v1/ HTTP/1.1\r\nHost: 127.0.0.1\r\n";
  for (int i = 0; i < 300; ++i) request += "X: y\r\n";
  Send(fd.get(), request + "\r\n");
  EXPECT_EQ(Rest(fd.get()).substr(0, 12), "HTTP/1.1 400");
}

TEST_F(ConnectionTest, DripsKeepNobodyOut) {
  constexpr int kDrips = 150;  // more connections than threads
  std::vector<UniqueFd> drips;
  std::atomic<bool> enough{false};
  for (int i = 0; i < kDrips; ++i) {
    drips.push_back(Dial());
    Send(drips.back().get(), "GET / HT");
  }
  std::thread dripping([&] {
    while (!enough) {
      for (UniqueFd& fd : drips) {
        if (!Send(fd.get(), "x")) {  // cut off: connect again
          fd = Dial();
          Send(fd.get(), "GET / HT");
        }
      }
      absl::SleepFor(absl::Milliseconds(100));
    }
  });
  for (int i = 0; i < 3; ++i) {
    const absl::Time begin = absl::Now();
    EXPECT_EQ(Ask("/api/v1/").status, 200);
    EXPECT_LT(absl::Now() - begin, absl::Seconds(20));
  }
  enough = true;
  dripping.join();
}

}  // namespace
}  // namespace pelab
