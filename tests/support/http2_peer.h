// An HTTP/2 client that does what no gRPC library does: it resets calls at once, leaves messages
// unfinished and takes no answers. It keeps to the protocol otherwise, so that it is not cut off
// for a violation.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/unique_fd.h"

namespace pelab::testing_support {

class Http2Peer {
 public:
  // Connects to a Unix socket. `window`: how many bytes of an answer the server may send.
  explicit Http2Peer(const std::string& path, std::uint32_t window = 65535) {
    fd_.Reset(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    std::memcpy(name.sun_path, path.c_str(), std::min(path.size(), sizeof(name.sun_path) - 1));
    connected_ = connect(fd_.get(), reinterpret_cast<const sockaddr*>(&name), sizeof(name)) == 0;
    std::string settings;
    AppendBytes(settings, kInitialWindowSize, 2);
    AppendBytes(settings, window, 4);
    Send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    SendFrame(kSettings, 0, 0, settings);
  }

  bool connected() const { return connected_; }

  // Opens a call and returns its stream. The next ones have 1, 3, 5, …
  std::uint32_t Open(std::string_view method) {
    const std::uint32_t stream = std::exchange(next_, next_ + 2);
    std::string head;
    for (const auto& [name, value] :
         {std::pair<std::string_view, std::string_view>{":method", "POST"},
          {":scheme", "http"},
          {":path", method},
          {":authority", "x"},
          {"te", "trailers"},
          {"content-type", "application/grpc"}}) {
      head += '\0';  // a literal that no table remembers
      head += static_cast<char>(name.size());
      head += name;
      head += static_cast<char>(value.size());
      head += value;
    }
    SendFrame(kHeaders, kEndHeaders, stream, head);
    windows_[stream] = initial_;
    return stream;
  }

  enum class Request { kEnds, kGoesOn };
  // Sends a message of the request, of less than 16 KiB; the last one unless the request goes on.
  void SendMessage(std::uint32_t stream, std::string_view content,
                   Request request = Request::kEnds) {
    std::string message(1, '\0');
    AppendBytes(message, content.size(), 4);
    message += content;
    SendFrame(kData, request == Request::kEnds ? kEndStream : 0, stream, message);
  }
  void SendEmptyMessage(std::uint32_t stream) { SendMessage(stream, ""); }

  // Begins the headers of a call and returns its stream. They end only with the connection.
  std::uint32_t BeginHeaders() {
    const std::uint32_t stream = std::exchange(next_, next_ + 2);
    SendFrame(kHeaders, 0, stream, "");
    return stream;
  }
  // Sends about 15 KiB of further headers. False if the server has closed the connection.
  bool SendMoreHeaders(std::uint32_t stream) {
    std::string block;
    for (int i = 0; i < 120; ++i) {
      block += std::string("\0\1x\x7d", 4);  // a literal that no table remembers, of 125 bytes
      block.append(125, 'v');
    }
    return SendFrame(kContinuation, 0, stream, block);
  }

  // Keeps frames back until Flush, which sends them together. For those who are in a hurry.
  void HoldBack() { holds_back_ = true; }
  bool Flush() { return Send(std::exchange(held_back_, {})); }

  // Begins a message of `whole` bytes and sends up to `part` bytes of it, as far as the server
  // allows within a while. Returns how many were sent.
  std::size_t SendPart(std::uint32_t stream, std::uint32_t whole, std::size_t part) {
    std::string message(1, '\0');
    AppendBytes(message, whole, 4);
    message.append(part, 'x');
    std::size_t sent = 0;
    while (sent < message.size()) {
      const std::int64_t most = std::min<std::int64_t>({windows_[stream], connection_, 16384});
      if (most <= 0) {
        if (!Receive(/*wait_ms=*/200)) break;
        continue;
      }
      const std::size_t n =
          std::min<std::size_t>(static_cast<std::size_t>(most), message.size() - sent);
      if (!SendFrame(kData, 0, stream, std::string_view(message).substr(sent, n))) break;
      windows_[stream] -= static_cast<std::int64_t>(n);
      connection_ -= static_cast<std::int64_t>(n);
      sent += n;
    }
    return sent;
  }

  void Reset(std::uint32_t stream) {
    std::string cancel;
    AppendBytes(cancel, 8, 4);
    SendFrame(kReset, 0, stream, cancel);
    windows_.erase(stream);
  }

  // Streams that the server has reset.
  int resets() const { return resets_; }

  // Reads what the server has sent: window updates, answers, pings. False if nothing came in time.
  bool Receive(int wait_ms) {
    timeval limit{.tv_sec = wait_ms / 1000, .tv_usec = (wait_ms % 1000) * 1000};
    setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    char bytes[65536];
    const ssize_t got = recv(fd_.get(), bytes, sizeof(bytes), wait_ms > 0 ? 0 : MSG_DONTWAIT);
    if (got <= 0) return false;
    received_.append(bytes, static_cast<std::size_t>(got));
    while (received_.size() >= 9) {
      const std::size_t size = Number(0, 3);
      if (received_.size() < 9 + size) break;
      Take(static_cast<std::uint8_t>(received_[3]), static_cast<std::uint8_t>(received_[4]),
           static_cast<std::uint32_t>(Number(5, 4)), size);
      received_.erase(0, 9 + size);
    }
    return true;
  }

 private:
  static constexpr std::uint8_t kData = 0;
  static constexpr std::uint8_t kHeaders = 1;
  static constexpr std::uint8_t kReset = 3;
  static constexpr std::uint8_t kSettings = 4;
  static constexpr std::uint8_t kPing = 6;
  static constexpr std::uint8_t kWindowUpdate = 8;
  static constexpr std::uint8_t kContinuation = 9;
  static constexpr std::uint8_t kEndStream = 1;
  static constexpr std::uint8_t kAck = 1;
  static constexpr std::uint8_t kEndHeaders = 4;
  static constexpr std::uint32_t kInitialWindowSize = 4;

  static void AppendBytes(std::string& out, std::uint64_t number, int bytes) {
    for (int i = bytes - 1; i >= 0; --i) out += static_cast<char>(number >> (8 * i));
  }
  std::size_t Number(std::size_t at, std::size_t bytes) const {
    std::size_t number = 0;
    for (std::size_t i = 0; i < bytes; ++i) {
      number = number << 8 | static_cast<std::uint8_t>(received_[at + i]);
    }
    return number;
  }
  bool Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
  }
  bool SendFrame(std::uint8_t type, std::uint8_t flags, std::uint32_t stream,
                 std::string_view payload) {
    std::string frame;
    AppendBytes(frame, payload.size(), 3);
    AppendBytes(frame, type, 1);
    AppendBytes(frame, flags, 1);
    AppendBytes(frame, stream, 4);
    frame += payload;
    if (!holds_back_) return Send(frame);
    held_back_ += frame;
    return true;
  }
  void Take(std::uint8_t type, std::uint8_t flags, std::uint32_t stream, std::size_t size) {
    if (type == kWindowUpdate) {
      const auto more = static_cast<std::int64_t>(Number(9, 4));
      if (stream == 0) {
        connection_ += more;
      } else if (const auto found = windows_.find(stream); found != windows_.end()) {
        found->second += more;
      }
    } else if (type == kReset) {
      ++resets_;
    } else if (type == kPing && (flags & kAck) == 0) {
      SendFrame(kPing, kAck, 0, received_.substr(9, size));
    } else if (type == kSettings && (flags & kAck) == 0) {
      for (std::size_t at = 9; at + 6 <= 9 + size; at += 6) {
        if (Number(at, 2) != kInitialWindowSize) continue;
        const auto initial = static_cast<std::int64_t>(Number(at + 2, 4));
        for (auto& [id, window] : windows_) window += initial - initial_;
        initial_ = initial;
      }
      SendFrame(kSettings, kAck, 0, "");
    }
  }

  UniqueFd fd_;
  bool connected_ = false;
  std::uint32_t next_ = 1;
  std::int64_t initial_ = 65535;                   // of each stream, as the server says
  std::int64_t connection_ = 65535;                // what the connection may still send
  std::map<std::uint32_t, std::int64_t> windows_;  // what each stream may still send
  std::string received_;
  int resets_ = 0;
  bool holds_back_ = false;
  std::string held_back_;
};

}  // namespace pelab::testing_support
