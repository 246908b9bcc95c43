// One worker's connection to the coordinator. Messages go both ways, in order, with a delay. The
// link may hold them up, and either end may close the connection or leave without notice.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "pelab/v1/fleet.pb.h"
#include "tests/sim/world.h"

namespace pelab::sim {

// The current state of the network between a worker and the coordinator.
struct Link {
  bool up_cut = false;
  bool down_cut = false;
  // the smallest delay; the largest is three times as long
  absl::Duration delay = absl::Milliseconds(2);
  double duplicates = 0;  // the share of event batches that arrive twice

  bool whole() const { return !up_cut && !down_cut; }
};

class Wire : public std::enable_shared_from_this<Wire> {
 public:
  Wire(World& world, const Link& link) : world_(world), link_(link) {}

  void SendUp(v1::WorkerMessage message);
  void SendDown(v1::CoordinatorMessage message);
  // Closes one direction. The other end learns of it after everything that was sent.
  void CloseUp();
  void CloseDown();
  // Delivers held-up messages after the link has recovered.
  void Pump();

  // The receivers at both ends; empty if nobody is there any more.
  std::function<void(v1::WorkerMessage)> server;
  std::function<void()> server_closed;
  std::function<void(const v1::CoordinatorMessage&)> client;
  std::function<void()> client_closed;
  // True if the coordinator's host runs: then it refuses messages of connections that no process
  // knows.
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
