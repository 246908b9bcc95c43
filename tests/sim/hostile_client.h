// A client that asks for what must be refused: with used tokens, about sweeps, jobs and workers
// that do not exist, with values that are out of range. Each request must be answered with an error
// or with nothing done; the ledger checks that it changes nothing.
#pragma once

#include <string>

#include "tests/sim/coordinator.h"
#include "tests/sim/ledger.h"
#include "tests/sim/people.h"
#include "tests/sim/world.h"

namespace pelab::sim {

class HostileClient {
 public:
  HostileClient(World& world, Ledger& ledger, Coordinator& coordinator, const People& people)
      : world_(world),
        ledger_(ledger),
        coordinator_(coordinator),
        people_(people),
        dice_(world.DiceFor("hostile client")) {}

  // Makes one request.
  void Ask();

 private:
  void Submit();
  void AskAboutNothing();  // a sweep, a job or a worker that does not exist
  void AskNonsense();      // of a sweep that exists
  void AskForAnalyses();
  // What counts as an answer to a request that must be refused. Errors of the coordinator, such as
  // a full queue, say nothing.
  Coordinator::Answer Refusal(const std::string& request);
  void Refused(const std::string& request, const absl::Status& status);
  std::int64_t AnySweep();  // 0: none is known
  std::int64_t Nowhere();   // the number of nothing
  std::int64_t Now() const { return absl::ToUnixMillis(world_.Wall()); }

  World& world_;
  Ledger& ledger_;
  Coordinator& coordinator_;
  const People& people_;
  Dice dice_;
};

}  // namespace pelab::sim
