// What a session needs of the attempts on this host. The supervisor implements it; tests put a fake
// in its place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "pelab/v1/fleet.pb.h"

namespace pelab::agent {

// Called by one thread, the session's.
class AttemptHost {
 public:
  virtual ~AttemptHost() = default;

  // Attempts that run, or have ended with events that are not acknowledged.
  virtual std::vector<v1::HeldAttempt> Held() = 0;

  // A new connection: nothing may be sent of an attempt before its Answer.
  virtual void Disconnected() = 0;
  // The coordinator's word on a held attempt: go on after `acknowledged`, or drop it.
  virtual void Answer(const v1::HeldAnswer& answer) = 0;

  virtual void Start(const v1::Assignment& assignment) = 0;
  // Attempts of one slot that one trainer may take.
  virtual void StartPack(const v1::AssignmentPack& pack) = 0;
  // Records it as preempted without starting a trainer.
  virtual void Refuse(const v1::Assignment& assignment) = 0;
  virtual void Stop(const v1::StopAttempt& stop) = 0;
  virtual void Acknowledge(const v1::Ack& ack) = 0;
  // Ends every trainer, keeping checkpoints; those that do not end within `grace` are killed.
  virtual void Preempt(absl::Duration grace) = 0;
  // Gives the coordinator the time between two tries to reach it.
  virtual void SetRetryCap(absl::Duration cap) = 0;

  // Moves events and log bytes that have not been sent on this connection into the message; false
  // where there are none.
  virtual bool NextEvents(std::size_t max_bytes, v1::EventBatch* batch) = 0;
  virtual bool NextLog(v1::LogChunk* chunk) = 0;

  // Nothing runs, and nothing waits for an acknowledgement.
  virtual bool Idle() = 0;
};

}  // namespace pelab::agent
