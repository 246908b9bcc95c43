// The process that attacks. It is apart from the honest clients so that its CPU time is measured
// apart, and so that it can be ended with everything that it holds.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/process.h"
#include "tests/bench/load/floods/attack.h"

namespace pelab::load {

// The first word of the command line with which a pelab-load attacks.
inline constexpr char kAttackCommand[] = "attack";

// `pelab-load attack NAME SOCKET PORT`: attacks until SIGTERM or until standard input ends, then
// prints the tally as JSON. Does not return; the exit status is 0.
[[noreturn]] void AttackUntilEnded(int argc, char** argv);

// Not thread-safe.
class Attacker {
 public:
  // Starts another process of this program, which attacks at once.
  static absl::StatusOr<Attacker> Start(const Attack& attack, const Target& target);

  pid_t pid() const { return process_.pid(); }
  // Ends it and returns its tally; all its connections are closed then. An error if it could not
  // attack.
  absl::StatusOr<nlohmann::json> Stop();

 private:
  Attacker(Process process, UniqueFd lifeline, UniqueFd output)
      : process_(std::move(process)), lifeline_(std::move(lifeline)), output_(std::move(output)) {}

  Process process_;
  UniqueFd lifeline_;  // its standard input: it ends when this process does
  UniqueFd output_;
};

}  // namespace pelab::load
