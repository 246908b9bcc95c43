// Speaks to an HTTP server as no client library does: slowly, or without end.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/base/unique_fd.h"

namespace pelab::testing_support {

// A connection to a port of this machine.
inline UniqueFd DialLoopback(int port) {
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  return fd;
}

// False if the server has closed the connection.
inline bool SendText(int fd, const std::string& text) {
  std::size_t sent = 0;
  while (sent < text.size()) {
    const ssize_t n = send(fd, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (n <= 0) return false;
    sent += static_cast<std::size_t>(n);
  }
  return true;
}

// Reads until the server closes the connection.
inline std::string ReadToEnd(int fd) {
  std::string all;
  char bytes[4096];
  for (ssize_t n = 0; (n = recv(fd, bytes, sizeof(bytes), 0)) > 0;) {
    all.append(bytes, static_cast<std::size_t>(n));
  }
  return all;
}

// Sends up to 64 MiB of headers after what was sent. Returns how many bytes the server and the
// sockets took.
inline std::size_t SendHeadersWithoutEnd(int fd) {
  const std::string headers = "X-More: " + std::string(1000, 'x') + "\r\n";
  std::size_t sent = 0;
  while (sent < (64 << 20) && SendText(fd, headers)) sent += headers.size();
  return sent;
}

}  // namespace pelab::testing_support
