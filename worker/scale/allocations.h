// The state of a queue's allocations, as the batch system and the workers report it. No I/O and no
// clock: the caller passes the times.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"

namespace pelab::scale {

enum class Phase {
  kWaiting,
  kStarting,  // it has its node, and its worker has not said hello
  kRunning,
  kEnding,
  kOver,
};

// An allocation as the batch system lists it.
struct Sighting {
  std::string id;
  std::string state;   // "PENDING", "RUNNING", …
  std::string reason;  // why it waits, or where it runs; for people
};

// The phase of a state of Slurm; kStarting for one in which the worker may run. If this program
// does not know the state, `known` is false and `phase` has no meaning.
struct SlurmPhase {
  bool known = false;
  Phase phase = Phase::kWaiting;
};
SlurmPhase PhaseOf(std::string_view state);
// "waiting", "starting", "running", "ending" or "over".
const char* NameOf(Phase phase);

struct Allocation {
  Phase phase = Phase::kWaiting;
  std::string state;  // the last that was seen
  std::string reason;
  bool said_hello = false;
  absl::Duration began;  // when it was first seen to have its node
  int absent = 0;        // looks in a row that did not list it
  int unknown = 0;       // looks in a row that listed a state which is not known
};

// An allocation that is over.
struct Ended {
  std::string id;
  std::string state;  // the last that was seen
  bool said_hello = false;
};

// Not thread-safe.
class Allocations {
 public:
  // The batch system took it.
  void Submitted(const std::string& id) { all_[id]; }
  // One look at the batch system, which listed these. An allocation that two looks in a row do not
  // list is over. A state that is not known leaves the phase as it was; after 20 looks in a row it
  // counts as over. Returns those that have ended.
  std::vector<Ended> See(const std::vector<Sighting>& listed, absl::Duration now);
  // The workers of these allocations are, or were, connected to the coordinator.
  void SaidHello(const std::set<std::string>& ids);
  // The allocations that have had their node for `timeout` or longer without a hello.
  std::vector<std::string> Late(absl::Duration now, absl::Duration timeout) const;

  int Count(Phase phase) const;
  // Waiting, starting, running or ending.
  int active() const { return static_cast<int>(all_.size()); }
  const std::map<std::string, Allocation>& all() const { return all_; }

 private:
  std::map<std::string, Allocation> all_;  // by id, without those that are over
};

}  // namespace pelab::scale
