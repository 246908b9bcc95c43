// The notifications that wait to be delivered, in order, and when the first of them is tried again.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>

#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/rpc/backoff.h"
#include "server/notify/messages.h"

namespace pelab::notify {

inline constexpr int kTries = 5;                   // of one notification
inline constexpr std::size_t kMostWaiting = 1000;  // notifications; further ones are dropped

// Not thread-safe.
class Outbox {
 public:
  // `unit_random` draws numbers from [0, 1). `clock` must outlive the object.
  Outbox(const Clock& clock, std::function<double()> unit_random);

  // False: too many wait already, and the message is dropped.
  bool Add(Message message);
  // How long until the first message may be tried; infinite if there is none, zero if it is due.
  absl::Duration Wait() const;
  // The first message. Call these only if there is one.
  const Message& First() const { return waiting_.front(); }
  int tries() const { return tries_; }  // that have failed
  void Delivered();
  // The try failed. It is tried again after a pause of 2 s at first, and twice as long each time.
  // False: it was the last try, and the message is gone.
  bool Failed();

  std::size_t size() const { return waiting_.size(); }

 private:
  void Next();

  const Clock& clock_;
  std::deque<Message> waiting_;
  int tries_ = 0;
  absl::Duration due_ = -absl::InfiniteDuration();  // monotonic
  rpc::Backoff backoff_;
};

}  // namespace pelab::notify
