// A simulated pelab-scale: it says that the batch system has ended the allocations of workers. Some
// of its reports are true, some are about workers that live or that nobody knows, and some come
// late or more than once.
#pragma once

#include <string>

#include "tests/sim/coordinator.h"
#include "tests/sim/world.h"

namespace pelab::sim {

class Scaler {
 public:
  Scaler(World& world, Coordinator& coordinator) : world_(world), coordinator_(coordinator) {}

  // Reports that the workers with this name are gone: after `delay`, perhaps once more later, and
  // again if there is no answer. After Calm it reports nothing any more.
  void Report(const std::string& name, absl::Duration delay);
  void ReportNobody();  // a name that no worker has
  void Calm() { calm_ = true; }

 private:
  void Try(const std::string& name, int tries);

  World& world_;
  Coordinator& coordinator_;
  Dice dice_ = world_.DiceFor("scaler's reports");
  bool calm_ = false;
};

}  // namespace pelab::sim
