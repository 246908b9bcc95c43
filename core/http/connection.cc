#include "core/http/connection.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/time/clock.h"

namespace pelab::http {
namespace {

constexpr std::size_t kBufferBytes = 4 << 10;
constexpr std::size_t kFarewellBytes = 256 << 10;
constexpr std::string_view kEventStream = "Content-Type: text/event-stream";
// How often to check whether others wait or the server stops.
constexpr absl::Duration kLook = absl::Milliseconds(100);

// Whether one of `events` occurred within the time.
bool Poll(int fd, short events, absl::Duration limit) {
  const absl::Time end = absl::Now() + limit;
  for (;;) {
    pollfd one{.fd = fd, .events = events, .revents = 0};
    const absl::Duration left = std::max(end - absl::Now(), absl::ZeroDuration());
    const int ready = poll(&one, 1, static_cast<int>(absl::ToInt64Milliseconds(left)));
    if (ready >= 0 || errno != EINTR) return ready > 0;
  }
}

}  // namespace

Connection::Connection(int fd, const ConnectionLimits& limits, std::function<bool()> others_wait,
                       std::function<bool()> ends)
    : fd_(fd),
      limits_(limits),
      others_wait_(std::move(others_wait)),
      ends_(std::move(ends)),
      began_(absl::Now()) {}

// Closing a connection while received bytes are unread resets it, and the peer may lose the answer.
// So the destructor first reads for a while.
Connection::~Connection() {
  shutdown(fd_, SHUT_WR);
  const absl::Time end = absl::Now() + limits_.farewell;
  std::array<char, kBufferBytes> ignored{};
  for (std::size_t most = kFarewellBytes / kBufferBytes; most > 0; --most) {
    if (absl::Now() >= end || others_wait_() || ends_() || !Poll(fd_, POLLIN, kLook)) break;
    if (recv(fd_, ignored.data(), ignored.size(), MSG_DONTWAIT) <= 0) break;
  }
  close(fd_);
}

absl::Duration Connection::Most(absl::Duration limit, absl::Duration hurried) const {
  return others_wait_() ? std::min(limit, hurried) : limit;
}

bool Connection::IsAnswerLate() const {
  if (streams_) return false;
  const absl::Duration taken =
      absl::Seconds(static_cast<double>(answered_) / static_cast<double>(limits_.answer_rate));
  return absl::Now() - began_answer_ >= Most(limits_.answer, limits_.hurried_answer) + taken;
}

bool Connection::AwaitBytes(absl::Time since, absl::Duration limit) {
  while (!Poll(fd_, POLLIN, kLook)) {
    if (ends_() || absl::Now() - since >= Most(limit, limits_.hurried)) return false;
  }
  return true;
}

bool Connection::AwaitRequest() {
  in_head_ = true;
  head_bytes_ = 0;
  head_lines_ = 0;
  line_bytes_ = 0;
  body_bytes_ = 0;
  began_answer_ = absl::InfiniteFuture();
  answered_ = 0;
  streams_ = false;
  began_ = absl::Now();
  if (taken_ < buffer_.size()) return true;
  if (!AwaitBytes(began_, limits_.idle)) return false;
  began_ = absl::Now();
  return Fill();
}

bool Connection::HasNoBody() const {
  const std::string_view text = std::string_view(buffer_).substr(taken_);
  return text.substr(0, 4) == "GET " || text.substr(0, 5) == "HEAD ";
}

bool Connection::Fill() {
  buffer_.resize(kBufferBytes);
  taken_ = 0;
  ssize_t got = -1;
  do {
    got = recv(fd_, buffer_.data(), buffer_.size(), 0);
  } while (got < 0 && errno == EINTR);
  buffer_.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  broken_ = broken_ || got <= 0;
  return got > 0;
}

bool Connection::Count(std::string_view bytes) {
  for (const char c : bytes) {
    if (!in_head_) {
      ++body_bytes_;
      continue;
    }
    if (c == '\n') {
      in_head_ = line_bytes_ > 0;  // an empty line ends the head
      line_bytes_ = 0;
      ++head_lines_;
    } else if (c != '\r') {
      ++line_bytes_;
    }
    ++head_bytes_;
  }
  return head_bytes_ <= limits_.head_bytes && head_lines_ <= limits_.head_lines &&
         body_bytes_ <= limits_.body_bytes;
}

ssize_t Connection::read(char* data, std::size_t size) {
  if (broken_ || size == 0) return broken_ ? -1 : 0;
  if (taken_ == buffer_.size() && !(AwaitBytes(began_, limits_.request) && Fill())) {
    broken_ = true;
    return -1;
  }
  // The peer may send a little all the time.
  const bool late = absl::Now() - began_ >= Most(limits_.request, limits_.hurried);
  const std::size_t n = std::min(size, buffer_.size() - taken_);
  if (late || !Count(std::string_view(buffer_).substr(taken_, n))) {
    broken_ = true;
    return -1;
  }
  std::memcpy(data, buffer_.data() + taken_, n);
  taken_ += n;
  return static_cast<ssize_t>(n);
}

ssize_t Connection::write(const char* data, std::size_t size) {
  if (began_answer_ == absl::InfiniteFuture()) {
    began_answer_ = absl::Now();
    // httplib writes an answer's head at once.
    streams_ = std::string_view(data, size).find(kEventStream) != std::string_view::npos;
  }
  // All or nothing: httplib writes the head of an answer only once.
  std::size_t done = 0;
  while (done < size) {
    if (!AwaitRoom()) return -1;
    const ssize_t sent = send(fd_, data + done, size - done, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno != EINTR && errno != EAGAIN) return -1;
    done += static_cast<std::size_t>(std::max<ssize_t>(sent, 0));
    answered_ += static_cast<std::size_t>(std::max<ssize_t>(sent, 0));
  }
  return static_cast<ssize_t>(size);
}

bool Connection::AwaitRoom() {
  const absl::Time since = absl::Now();
  do {
    if (IsAnswerLate() || absl::Now() - since >= limits_.write) return false;
  } while (!Poll(fd_, POLLOUT, kLook));
  return true;
}

bool Connection::is_readable() const {
  return taken_ < buffer_.size() || Poll(fd_, POLLIN, absl::ZeroDuration());
}

bool Connection::is_writable() const {
  if (!Poll(fd_, POLLOUT, limits_.write)) return false;
  if (!Poll(fd_, POLLIN, absl::ZeroDuration())) return true;
  char one = 0;
  return recv(fd_, &one, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

void Connection::get_remote_ip_and_port(std::string& ip, int& port) const {
  sockaddr_storage name{};
  socklen_t length = sizeof(name);
  auto* const address = reinterpret_cast<sockaddr*>(&name);
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> service{};
  if (getpeername(fd_, address, &length) != 0 ||
      getnameinfo(address, length, host.data(), host.size(), service.data(), service.size(),
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return;
  }
  ip = host.data();
  port = std::atoi(service.data());
}

}  // namespace pelab::http
