// The worker's side of one session with the coordinator, as a pure object: messages go in and come
// out, without threads, sockets or waiting. A connection begins with Connected. When it breaks,
// only the state in this object and in the AttemptHost remains.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/rpc/fleet_protocol.h"
#include "pelab/v1/fleet.pb.h"
#include "worker/agent/attempt_host.h"

namespace pelab::agent {

struct WorkerIdentity {
  std::string worker_id;
  std::string name;  // the name for people
  std::string host;
  std::string version;
  std::string capabilities_json;
  std::vector<v1::Slot> slots;
  std::int64_t available_until_ms = 0;  // as in v1::Hello
  std::uint32_t margin_ms = 0;
  rpc::ProtocolRange protocols = rpc::kFleetProtocols;
};

// For one thread.
class Session {
 public:
  // `host` and `clock` must outlive the session. `measure` adds to every heartbeat what is measured
  // of the GPUs; it may be empty.
  using Measure = std::function<void(v1::Heartbeat&)>;
  Session(WorkerIdentity identity, AttemptHost* host, const Clock* clock, Measure measure = {});

  // A stream is open: the next message is Hello.
  void Connected();

  // INVALID_ARGUMENT or FAILED_PRECONDITION if the coordinator breaks the protocol: then close the
  // connection.
  absl::Status Receive(const v1::CoordinatorMessage& message);

  // The next message to send now; false if there is none. Hello comes first, then nothing until
  // Welcome. After Welcome, heartbeats that are due go before logs. Logs go before events, so that
  // the coordinator has the log when the attempt ends.
  bool Next(v1::WorkerMessage* message);

  // The monotonic time at which something is due even if nothing happens: a heartbeat, or giving up
  // the connection.
  absl::Duration NextTimer() const;
  // True if nothing was heard for one lease: then give the connection up.
  bool Silent() const;

  // The daemon ends. Goodbye becomes the last message: once the host is idle, or at once if
  // `without_waiting` is set. The reason of the first call counts.
  void BeginGoodbye(v1::Goodbye::Reason reason, bool without_waiting);
  // This worker must get no more jobs, for the reason `why`, until a person lets it take jobs
  // again. Its attempts are given back, and every heartbeat says why until then.
  void SetUnfit(const std::string& why);

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
  const Measure measure_;
  absl::Duration heartbeat_ = absl::Seconds(5);
  absl::Duration lease_ = absl::Seconds(20);
  std::string unfit_;  // empty: it can train
  bool hello_due_ = false;
  bool welcomed_ = false;
  bool draining_ = false;
  bool goodbye_ = false;
  v1::Goodbye::Reason goodbye_reason_ = v1::Goodbye::REASON_UNSPECIFIED;
  bool goodbye_without_waiting_ = false;
  bool said_goodbye_ = false;
  std::uint64_t heartbeats_ = 0;
  // the number of attempts that the coordinator thinks this worker holds
  std::size_t held_told_ = 0;
  absl::Duration next_heartbeat_;
  absl::Duration heard_at_;
};

}  // namespace pelab::agent
