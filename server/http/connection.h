// A connection as httplib reads and writes it, with the bounds that httplib lacks: on a request's
// head as a whole, and on the time until a request is there as a whole.
#pragma once

#include <httplib.h>

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "absl/time/time.h"

namespace pelab::http {

struct ConnectionLimits {
  std::size_t head_bytes = 64 << 10;  // the request line and all headers
  int head_lines = 200;
  absl::Duration idle = absl::Seconds(2);      // until a request's first byte
  absl::Duration request = absl::Seconds(10);  // from there to its last
  absl::Duration hurried = absl::Seconds(1);   // both, while others wait for a thread
  absl::Duration write = absl::Seconds(10);    // until the other side takes anything
  absl::Duration farewell = absl::Seconds(1);  // for what it still sends when it is told no
};

// Of one thread. Closes the descriptor when it is destroyed.
class Connection final : public httplib::Stream {
 public:
  // `others_wait`: whether connections wait for a thread; `ends`: whether the server is to end.
  Connection(int fd, const ConnectionLimits& limits, std::function<bool()> others_wait,
             std::function<bool()> ends);
  ~Connection() override;

  // Waits for a request; false where none begins in time.
  bool AwaitRequest();
  // Whether what has come of the request begins as one without a body: others are the last of
  // their connection, because a body that nobody read would be taken for the next request.
  bool HasNoBody() const;
  // Whether the request was cut off, by either side.
  bool broken() const { return broken_; }

  bool is_readable() const override;
  bool is_writable() const override;  // and the other side is there
  ssize_t read(char* data, std::size_t size) override;
  ssize_t write(const char* data, std::size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  socket_t socket() const override { return fd_; }

 private:
  // Waits until there is something to read, `limit` at most from `since` on.
  bool AwaitBytes(absl::Time since, absl::Duration limit);
  bool Fill();
  // Follows the head's lines; false where they are too many or too long.
  bool CountHead(std::string_view bytes);

  const int fd_;
  const ConnectionLimits limits_;
  const std::function<bool()> others_wait_;
  const std::function<bool()> ends_;
  std::string buffer_;
  std::size_t taken_ = 0;  // of buffer_
  absl::Time began_;       // the request
  bool in_head_ = true;
  bool broken_ = false;
  std::size_t head_bytes_ = 0;
  int head_lines_ = 0;
  std::size_t line_bytes_ = 0;
};

}  // namespace pelab::http
