// A coordinator in this process, on a Unix socket: it stores what workers send as strictly as the
// real one (token, sequence without gap) and does what a test tells it to.
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

// What the fake knows of one attempt.
struct StoredAttempt {
  v1::Assignment assignment;
  bool current = true;            // false: superseded
  std::vector<v1::Event> events;  // as stored: each sequence number once
  std::string log;
  bool has_gap = false;  // an event came that does not follow the last one

  std::optional<v1::Finished> finished() const;
  std::vector<int> epochs() const;
};

// Thread-safe.
class FakeFleet {
 public:
  explicit FakeFleet(const std::string& socket_path);
  ~FakeFleet();  // ends like a process that dies: streams break, the socket goes

  // Answers of the next welcomes.
  void SetTimes(absl::Duration heartbeat, absl::Duration lease);
  // While false, events are stored but not acknowledged.
  void SetAcknowledging(bool on);
  void SetAnsweringHeartbeats(bool on);
  // What PutArtifact and GetArtifact answer instead of storing or sending: a gRPC code; nullopt:
  // they do it.
  void SetArtifactError(std::optional<int> code);
  // Puts a file there for GetArtifact; answers its SHA-256.
  std::string KeepArtifact(const std::string& data);
  // GetArtifact sends this in place of what is asked for.
  void SendInstead(const std::string& data);
  int Downloads() const;  // calls of GetArtifact
  int Uploads() const;    // calls of PutArtifact
  // Sees files in this directory that a worker says it has put there.
  void SetStore(const std::string& directory);

  // Stores the assignment and sends it on the live stream.
  void Assign(const v1::Assignment& assignment);
  void AssignPack(const std::vector<v1::Assignment>& assignments);
  void Send(const v1::CoordinatorMessage& message);
  void Cancel(std::int64_t attempt_id);
  void Supersede(std::int64_t attempt_id);  // only marks it; the worker hears of it in answers and
                                            // acknowledgements
  // Breaks the live stream.
  void Disconnect();

  // A copy that another FakeFleet goes on with, as after a restart.
  std::map<std::int64_t, StoredAttempt> Stored() const;
  void Restore(std::map<std::int64_t, StoredAttempt> stored);

  std::vector<v1::Hello> Hellos() const;
  int Heartbeats() const;
  std::vector<v1::HeldAttempt> LastHeartbeatHeld() const;
  int Goodbyes() const;
  bool connected() const;
  std::map<std::string, std::string> Artifacts() const;  // by SHA-256

  // Waits until `condition`, which sees this object's state, is true; false after 20 s.
  bool Await(const std::function<bool()>& condition) const;
  // Waits until the attempt has finished and answers how.
  std::optional<v1::Finished> AwaitFinished(std::int64_t attempt_id) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// An assignment whose spec makes trainer_double.sh behave as `mode` says.
v1::Assignment MakeAssignment(std::int64_t attempt_id, const std::string& mode, int epochs = 3,
                              int slot = 0);

}  // namespace pelab::agent
