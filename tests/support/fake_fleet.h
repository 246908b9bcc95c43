// A coordinator in this process, on a Unix socket. It checks events as strictly as the real one
// (token, no gap in the sequence), and it does what a test tells it to.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "pelab/v1/fleet.pb.h"

namespace pelab::agent {

// The fake's record of one attempt.
struct StoredAttempt {
  v1::Assignment assignment;
  bool current = true;            // false: superseded
  std::vector<v1::Event> events;  // as stored: each sequence number once
  std::string log;
  bool has_gap = false;  // an event did not follow the last one

  std::optional<v1::Finished> finished() const;
  std::vector<int> epochs() const;
};

// Thread-safe.
class FakeFleet {
 public:
  explicit FakeFleet(const std::string& socket_path);
  ~FakeFleet();  // ends like a process that dies: streams break, the socket vanishes

  // Sets the values in the next Welcome messages.
  void SetTimes(absl::Duration heartbeat, absl::Duration lease);
  // While false, events are stored but not acknowledged.
  void SetAcknowledging(bool on);
  void SetAnsweringHeartbeats(bool on);
  // Makes PutArtifact and GetArtifact fail with this gRPC code; nullopt: they work.
  void SetArtifactError(std::optional<int> code);
  // Stores a file for GetArtifact and returns its SHA-256.
  std::string KeepArtifact(const std::string& data);
  // GetArtifact sends this instead of the requested file.
  void SendInstead(const std::string& data);
  int Downloads() const;  // calls of GetArtifact
  int Uploads() const;    // calls of PutArtifact
  // Makes the coordinator see the files that workers announce in this directory.
  void SetStore(const std::string& directory);

  // Stores the assignment and sends it on the live stream.
  void Assign(const v1::Assignment& assignment);
  void AssignPack(const std::vector<v1::Assignment>& assignments);
  void Send(const v1::CoordinatorMessage& message);
  void Cancel(std::int64_t attempt_id);
  // Only marks the attempt; the worker hears of it in answers and acknowledgements.
  void Supersede(std::int64_t attempt_id);
  // Breaks the live stream.
  void Disconnect();

  // A copy of the state, with which another FakeFleet can continue, as after a restart.
  std::map<std::int64_t, StoredAttempt> Stored() const;
  void Restore(std::map<std::int64_t, StoredAttempt> stored);

  std::vector<v1::Hello> Hellos() const;
  int Heartbeats() const;
  std::vector<v1::HeldAttempt> LastHeartbeatHeld() const;
  std::string LastHeartbeatUnfit() const;
  int Goodbyes() const;
  v1::Goodbye::Reason LastGoodbye() const;
  bool connected() const;
  std::map<std::string, std::string> Artifacts() const;  // by SHA-256

  // Waits until `condition` is true; false after 20 s. `condition` may read this object's state.
  bool Await(const std::function<bool()>& condition) const;
  // Waits until the attempt has finished, and returns how.
  std::optional<v1::Finished> AwaitFinished(std::int64_t attempt_id) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// An assignment whose spec selects a `mode` of trainer_double.sh.
v1::Assignment MakeAssignment(std::int64_t attempt_id, const std::string& mode, int epochs = 3,
                              int slot = 0);

}  // namespace pelab::agent
