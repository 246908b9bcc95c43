// The attempts on this host, as a session sees them. The supervisor implements this interface;
// tests use a fake.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "pelab/v1/fleet.pb.h"

namespace pelab::agent {

// Only the session's thread calls these functions.
class AttemptHost {
 public:
  virtual ~AttemptHost() = default;

  // Attempts that run, or that have ended with events that are not acknowledged.
  virtual std::vector<v1::HeldAttempt> Held() = 0;

  // The old connection is gone. Until Answer is called for an attempt, nothing about it may be
  // sent.
  virtual void Disconnected() = 0;
  // The coordinator's answer about a held attempt: send the events after `acknowledged`, or drop
  // the attempt.
  virtual void Answer(const v1::HeldAnswer& answer) = 0;

  virtual void Start(const v1::Assignment& assignment) = 0;
  // Attempts for one slot that may share one trainer.
  virtual void StartPack(const v1::AssignmentPack& pack) = 0;
  // Records the attempt as preempted without starting a trainer.
  virtual void Refuse(const v1::Assignment& assignment) = 0;
  virtual void Stop(const v1::StopAttempt& stop) = 0;
  virtual void Acknowledge(const v1::Ack& ack) = 0;
  // Ends every trainer; each keeps a checkpoint first. Trainers that do not end within `grace` are
  // killed.
  virtual void Preempt(absl::Duration grace) = 0;
  // Sets the longest pause between two tries to send or fetch a file.
  virtual void SetRetryCap(absl::Duration cap) = 0;

  // Moves events (or log bytes) that were not yet sent on this connection into the message. False
  // if there are none.
  virtual bool NextEvents(std::size_t max_bytes, v1::EventBatch* batch) = 0;
  virtual bool NextLog(v1::LogChunk* chunk) = 0;

  // True if nothing runs and nothing waits for an acknowledgement.
  virtual bool Idle() = 0;
};

}  // namespace pelab::agent
