#include "tests/sim/wire.h"

#include <algorithm>

namespace pelab::sim {

template <typename Message>
void Wire::Put(Way<Message>& way, std::optional<Message> message) {
  absl::Duration when = world_.Monotonic() + link_.delay * (1 + 2 * world_.Unit());
  if (!way.empty()) when = std::max(when, way.back().first);
  way.emplace_back(when, std::move(message));
  world_.At(when, [self = shared_from_this()] { self->Pump(); });
}

void Wire::SendUp(v1::WorkerMessage message) { Put(up_, std::optional(std::move(message))); }
void Wire::SendDown(v1::CoordinatorMessage message) {
  Put(down_, std::optional(std::move(message)));
}
void Wire::CloseUp() { Put<v1::WorkerMessage>(up_, std::nullopt); }
void Wire::CloseDown() { Put<v1::CoordinatorMessage>(down_, std::nullopt); }

template <typename Message>
bool Wire::Take(Way<Message>& way, bool cut, std::optional<Message>& message) {
  if (cut || way.empty() || way.front().first > world_.Monotonic()) return false;
  message = std::move(way.front().second);
  way.pop_front();
  return true;
}

void Wire::Pump() {
  PumpUp();
  PumpDown();
}

void Wire::PumpUp() {
  std::optional<v1::WorkerMessage> message;
  while (Take(up_, link_.up_cut, message)) {
    if (!server) {
      if (message && host_answers && host_answers()) CloseDown();
    } else if (message) {
      const auto receive = server;  // a copy, because the call may close the wire
      const bool twice = message->has_events() && world_.Chance(link_.duplicates);
      if (twice) receive(*message);
      receive(*std::move(message));
    } else {
      const auto closed = server_closed;
      closed();
    }
  }
}

void Wire::PumpDown() {
  std::optional<v1::CoordinatorMessage> message;
  while (Take(down_, link_.down_cut, message)) {
    if (!client) continue;
    if (message) {
      const auto receive = client;  // a copy, because the call may release the wire
      receive(*message);
    } else {
      const auto closed = client_closed;
      closed();
    }
  }
}

}  // namespace pelab::sim
