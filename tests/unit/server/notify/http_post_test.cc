#include "server/notify/http_post.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <functional>
#include <string>
#include <thread>

#include "absl/time/clock.h"
#include "core/base/unique_fd.h"
#include "tests/support/raw_http.h"
#include "tests/support/status_matchers.h"

namespace pelab::notify {
namespace {

using testing::HasSubstr;
using testing_support::SendText;

// A receiver that takes one connection and answers in a way of its own.
class Receiver {
 public:
  // `answer` is called with the connection, on a thread of the receiver.
  explicit Receiver(const std::function<void(int fd)>& answer)
      : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(name);
    EXPECT_EQ(bind(listener_.get(), reinterpret_cast<sockaddr*>(&name), size), 0);
    EXPECT_EQ(getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&name), &size), 0);
    EXPECT_EQ(listen(listener_.get(), 1), 0);
    address_.host = "http://127.0.0.1:" + std::to_string(ntohs(name.sin_port));
    address_.path = "/hook";
    thread_ = std::thread([this, answer] {
      const UniqueFd fd(accept(listener_.get(), nullptr, nullptr));
      answer(fd.get());
    });
  }
  ~Receiver() { thread_.join(); }
  const Address& address() const { return address_; }

 private:
  UniqueFd listener_;
  Address address_;
  std::thread thread_;
};

absl::Status PostTo(const std::string& answer) {
  const Receiver receiver([&answer](int fd) {
    char request[4096];
    recv(fd, request, sizeof(request), 0);
    SendText(fd, answer);
  });
  return HttpPost(receiver.address(), nullptr).Post("{}");
}

TEST(HttpPost, AnAnswerOf200To299IsEnough) {
  EXPECT_THAT(PostTo("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"), IsOk());
  // Discord, among others, answers without a body.
  EXPECT_THAT(PostTo("HTTP/1.1 204 No Content\r\n\r\n"), IsOk());
  EXPECT_THAT(PostTo("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("answered 404")));
  EXPECT_THAT(PostTo("no HTTP\r\n\r\n"), StatusIs(absl::StatusCode::kUnavailable,
                                                  HasSubstr("no answer from http://127.0.0.1")));
}

// Answers with a beginning and then a byte each 10 ms.
std::function<void(int fd)> Slowly(const std::string& beginning) {
  return [beginning](int fd) {
    const absl::Time end = absl::Now() + absl::Seconds(60);
    SendText(fd, beginning);
    while (absl::Now() < end && SendText(fd, "x")) absl::SleepFor(absl::Milliseconds(10));
  };
}

TEST(HttpPost, AnAnswerOfAByteAtATimeEnds) {
  const Receiver receiver(Slowly("HTTP/1.1 200 OK\r\nX-More: "));
  HttpPost post(receiver.address(), nullptr, /*most=*/absl::Milliseconds(300));
  const absl::Time begin = absl::Now();
  EXPECT_THAT(post.Post("{}"), StatusIs(absl::StatusCode::kUnavailable,
                                        HasSubstr("takes longer than 300ms to answer")));
  EXPECT_LT(absl::Now() - begin, absl::Seconds(30));
}

TEST(HttpPost, WhatWasAcceptedIsNotSentAgainForItsSlowBody) {
  const Receiver receiver(Slowly("HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n"));
  HttpPost post(receiver.address(), nullptr, /*most=*/absl::Milliseconds(300));
  EXPECT_THAT(post.Post("{}"), IsOk());
}

}  // namespace
}  // namespace pelab::notify
