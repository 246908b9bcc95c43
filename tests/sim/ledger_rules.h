// What a stored event may say, written down a second time: the ledger shares no rule with
// core/event/check.h and with the store.
#pragma once

#include <set>
#include <string>

#include "pelab/v1/fleet.pb.h"
#include "tests/sim/truth.h"

namespace pelab::sim {

struct JobRules {
  int epochs = 0;               // of the job
  int epochs_done = 0;          // that were stored before the event
  bool analyses_only = false;   // the job is trained already
  std::set<std::string> asked;  // the analyses that the attempt was asked for (NameOfAnalysis)
  Shape shape = {};             // of the job
};

std::string NameOfAnalysis(const std::string& name, int version, const std::string& parameters);

// Empty if the event keeps all rules; otherwise the one that it breaks.
std::string BrokenRule(const v1::Event& event, const JobRules& job);

}  // namespace pelab::sim
