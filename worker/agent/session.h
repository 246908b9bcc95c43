// The worker's side of one session with the coordinator, without threads, sockets or waiting:
// messages go in and come out. A connection begins with Connected; everything that is not in an
// AttemptHost or here is forgotten when it breaks.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "pelab/v1/fleet.pb.h"
#include "worker/agent/attempt_host.h"

namespace pelab::agent {

inline constexpr int kFleetProtocol = 1;

struct WorkerIdentity {
  std::string worker_id;
  std::string name;  // what people call it
  std::string host;
  std::string version;
  std::string capabilities_json;
  std::vector<v1::Slot> slots;
};

// One thread.
class Session {
 public:
  // `host` and `clock` must outlive the session. `loads` goes with every heartbeat; may be empty.
  using Loads = std::function<std::vector<v1::DeviceLoad>()>;
  Session(WorkerIdentity identity, AttemptHost* host, const Clock* clock, Loads loads = {});

  // A stream is open: the next message is Hello.
  void Connected();

  // INVALID_ARGUMENT or FAILED_PRECONDITION where the coordinator breaks the protocol: the
  // connection is to be given up.
  absl::Status Receive(const v1::CoordinatorMessage& message);

  // The next message to send now; false where there is none. Hello first, then nothing before
  // Welcome; heartbeats when due go before logs, logs before events, so that a log is there when
  // its attempt ends.
  bool Next(v1::WorkerMessage* message);

  // When (monotonic) something has to be done although nothing happens: a heartbeat, or giving up.
  absl::Duration NextTimer() const;
  // Nothing was heard for a lease: give the connection up.
  bool Silent() const;

  // The daemon ends: once the host is idle, or `without_waiting`, the last message is Goodbye.
  void BeginGoodbye(bool without_waiting);
  bool said_goodbye() const { return said_goodbye_; }

  bool welcomed() const { return welcomed_; }
  absl::Duration lease() const { return lease_; }

 private:
  v1::WorkerMessage MakeHello();
  bool HeartbeatIsDue(v1::Heartbeat* heartbeat);
  absl::Status ReceiveWelcome(const v1::Welcome& welcome);
  void ReceiveAssignment(const v1::Assignment& assignment);
  void ReceivePack(const v1::AssignmentPack& pack);
  void ReceiveDrain(const v1::Drain& drain);

  const WorkerIdentity identity_;
  AttemptHost* const host_;
  const Clock* const clock_;
  const Loads loads_;
  absl::Duration heartbeat_ = absl::Seconds(5);
  absl::Duration lease_ = absl::Seconds(20);
  bool hello_due_ = false;
  bool welcomed_ = false;
  bool draining_ = false;
  bool goodbye_ = false;
  bool goodbye_without_waiting_ = false;
  bool said_goodbye_ = false;
  std::uint64_t heartbeats_ = 0;
  std::size_t held_told_ = 0;  // how many attempts the coordinator knows this worker to hold
  absl::Duration next_heartbeat_;
  absl::Duration heard_at_;
};

}  // namespace pelab::agent
