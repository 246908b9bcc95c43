// Clients that send an endless request, or send it byte by byte, must use up neither the memory nor
// all threads.
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/unique_fd.h"
#include "server/http/http_server.h"
#include "tests/contract/http/http_fixture.h"
#include "tests/support/raw_http.h"

namespace pelab {
namespace {

class ConnectionTest : public HttpTest {
 protected:
  UniqueFd Dial() const { return testing_support::DialLoopback(port()); }
  static bool Send(int fd, const std::string& text) { return testing_support::SendText(fd, text); }
};

TEST_F(ConnectionTest, HeadersEnd) {
  const UniqueFd fd = Dial();
  ASSERT_TRUE(Send(fd.get(), "GET /api/v1/ HTTP/1.1\r\nHost: 127.0.0.1\r\n"));
  EXPECT_LT(testing_support::SendHeadersWithoutEnd(fd.get()), 32u << 20)
      << "what the two sockets hold, and no end of it";
  EXPECT_EQ(Ask("/api/v1/").status, 200);
}

// httplib alone would read all of such a body into memory.
TEST_F(ConnectionTest, ABodyInChunksIsNotRead) {
  const UniqueFd fd = Dial();
  ASSERT_TRUE(Send(fd.get(),
                   "POST /api/v1/sweeps/1/pause HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                   "Transfer-Encoding: chunked\r\n\r\n"));
  const std::string chunk = "400\r\n" + std::string(1024, 'x') + "\r\n";
  std::size_t sent = 0;
  while (sent < (64 << 20) && Send(fd.get(), chunk)) sent += chunk.size();
  EXPECT_LT(sent, 32u << 20) << "what the two sockets hold, and no end of it";
  EXPECT_EQ(Ask("/api/v1/").status, 200);
}

TEST_F(ConnectionTest, TooManyHeadersAreRefused) {
  const UniqueFd fd = Dial();
  std::string request = "GET /api/v1/ HTTP/1.1\r\nHost: 127.0.0.1\r\n";
  for (int i = 0; i < 300; ++i) request += "X: y\r\n";
  Send(fd.get(), request + "\r\n");
  EXPECT_EQ(testing_support::ReadToEnd(fd.get()).substr(0, 12), "HTTP/1.1 400");
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
      absl::SleepFor(absl::Milliseconds(30));
    }
  });
  for (int i = 0; i < 3; ++i) {
    const absl::Time begin = absl::Now();
    EXPECT_EQ(Ask("/api/v1/").status, 200);
    EXPECT_LT(absl::Now() - begin, absl::Seconds(8));
  }
  enough = true;
  dripping.join();
}

// Each of them takes a little of a large answer all the time.
TEST_F(ConnectionTest, SlowReadersKeepNobodyOut) {
  constexpr int kReaders = 150;  // more connections than threads
  std::vector<UniqueFd> readers;
  std::atomic<bool> enough{false};
  const auto ask = [this](UniqueFd& fd) {
    fd = Dial();
    Send(fd.get(), "GET /assets/plotly.js HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
  };
  for (int i = 0; i < kReaders; ++i) ask(readers.emplace_back());
  std::thread reading([&] {
    while (!enough) {
      for (UniqueFd& fd : readers) {
        char bytes[256];
        if (recv(fd.get(), bytes, sizeof(bytes), MSG_DONTWAIT) == 0) ask(fd);
      }
      absl::SleepFor(absl::Milliseconds(30));
    }
  });
  for (int i = 0; i < 3; ++i) {
    const absl::Time begin = absl::Now();
    EXPECT_EQ(Ask("/api/v1/").status, 200);
    EXPECT_LT(absl::Now() - begin, absl::Seconds(12));
  }
  enough = true;
  reading.join();
}

TEST_F(ConnectionTest, TheEndWaitsForNobodyWhoDoesNotRead) {
  const UniqueFd fd = Dial();
  std::string requests;  // more answers than the two sockets hold
  for (int i = 0; i < 20; ++i) {
    requests += "GET /assets/plotly.js HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
  }
  ASSERT_TRUE(Send(fd.get(), requests));
  EXPECT_EQ(Ask("/api/v1/").status, 200);
  char byte = 0;
  ASSERT_EQ(recv(fd.get(), &byte, 1, MSG_PEEK), 1) << "the first answer has begun";
  absl::SleepFor(absl::Milliseconds(500));
  const absl::Time begin = absl::Now();
  coordinator_->Stop();
  EXPECT_LT(absl::Now() - begin, absl::Seconds(6)) << "a single write may take 10 s";
}

}  // namespace
}  // namespace pelab
