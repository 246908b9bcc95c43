// A connection that httplib reads and writes. It adds limits that httplib lacks: on the size of a
// request's whole head, and on the time until a whole request has arrived.
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
  absl::Duration idle = absl::Seconds(2);      // until the first byte of a request
  absl::Duration request = absl::Seconds(10);  // from the first byte of a request to its last
  // Replaces both of these limits while other connections wait for a thread.
  absl::Duration hurried = absl::Seconds(1);
  absl::Duration write = absl::Seconds(10);  // until the peer accepts any bytes
  // For a whole answer: this time, and a second more for each `answer_rate` bytes that were taken.
  // An event stream has no end and is not meant.
  absl::Duration answer = absl::Seconds(30);
  absl::Duration hurried_answer = absl::Seconds(2);  // replaces `answer` while others wait
  std::size_t answer_rate = 64 << 10;
  std::size_t body_bytes = 128 << 10;  // what follows the head of a request, with its framing
  // How long the destructor reads what the peer still sends, so that a refusal is not lost.
  absl::Duration farewell = absl::Seconds(1);
};

// For one thread. The destructor closes the descriptor.
class Connection final : public httplib::Stream {
 public:
  // `others_wait`: whether connections wait for a thread. `ends`: whether the server is stopping.
  Connection(int fd, const ConnectionLimits& limits, std::function<bool()> others_wait,
             std::function<bool()> ends);
  ~Connection() override;

  // Waits for a request. False if none begins in time.
  bool AwaitRequest();
  // Whether the bytes received so far begin a request without a body (GET or HEAD). After any other
  // request the connection is closed, because an unread body would be taken for the next request.
  bool HasNoBody() const;
  // Whether either side cut the request off.
  bool broken() const { return broken_; }

  bool is_readable() const override;
  bool is_writable() const override;  // also checks that the peer is still there
  ssize_t read(char* data, std::size_t size) override;
  ssize_t write(const char* data, std::size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string&, int&) const override {}  // not used
  socket_t socket() const override { return fd_; }

 private:
  // Waits until there is something to read, but no longer than `limit` after `since`.
  bool AwaitBytes(absl::Time since, absl::Duration limit);
  bool Fill();
  // `limit`, or `hurried` if that is shorter and others wait for a thread.
  absl::Duration Most(absl::Duration limit, absl::Duration hurried) const;
  // Waits until some of the answer can be sent. False if it is late.
  bool AwaitRoom();
  // Whether the peer has taken too long for what it has taken of the answer.
  bool IsAnswerLate() const;
  // Counts the lines and bytes of the head, and then the bytes of the body. False if there are too
  // many.
  bool Count(std::string_view bytes);

  const int fd_;
  const ConnectionLimits limits_;
  const std::function<bool()> others_wait_;
  const std::function<bool()> ends_;
  std::string buffer_;
  std::size_t taken_ = 0;  // position in buffer_ up to which it was read
  absl::Time began_;       // start of the current request
  bool in_head_ = true;
  bool broken_ = false;
  std::size_t head_bytes_ = 0;
  int head_lines_ = 0;
  std::size_t line_bytes_ = 0;
  std::size_t body_bytes_ = 0;
  absl::Time began_answer_ = absl::InfiniteFuture();
  std::size_t answered_ = 0;  // bytes of the current answer that the peer has taken
  bool streams_ = false;      // whether the answer is an event stream
};

}  // namespace pelab::http
