// One worker's connection to the coordinator: two ways, each in order, with delay, which the link
// below may hold up, and which either end may close or leave without a word.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "pelab/v1/fleet.pb.h"
#include "tests/sim/world.h"

namespace pelab::sim {

// What the network between a worker and the coordinator is like at the moment.
struct Link {
  bool up_cut = false;
  bool down_cut = false;
  absl::Duration delay = absl::Milliseconds(2);  // at most three times that
  double duplicates = 0;                         // share of event batches that arrive twice

  bool whole() const { return !up_cut && !down_cut; }
};

class Wire : public std::enable_shared_from_this<Wire> {
 public:
  Wire(World& world, const Link& link) : world_(world), link_(link) {}

  void SendUp(v1::WorkerMessage message);
  void SendDown(v1::CoordinatorMessage message);
  // The other end learns of it after everything that was sent.
  void CloseUp();
  void CloseDown();
  // The link is better.
  void Pump();

  // The ends; empty where nobody is there any more.
  std::function<void(v1::WorkerMessage)> server;
  std::function<void()> server_closed;
  std::function<void(const v1::CoordinatorMessage&)> client;
  std::function<void()> client_closed;
  // Whether the coordinator's host runs: it refuses what no process knows.
  std::function<bool()> host_answers;

 private:
  template <typename Message>
  using Way = std::deque<std::pair<absl::Duration, std::optional<Message>>>;

  template <typename Message>
  void Put(Way<Message>& way, std::optional<Message> message);
  void PumpUp();
  void PumpDown();
  template <typename Message>
  bool Take(Way<Message>& way, bool cut, std::optional<Message>& message);

  World& world_;
  const Link& link_;
  Way<v1::WorkerMessage> up_;
  Way<v1::CoordinatorMessage> down_;
};

}  // namespace pelab::sim
