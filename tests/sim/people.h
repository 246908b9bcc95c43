// People under simulation: they submit, cancel and ask for analyses at random moments, and ask again
// until they are answered.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/sim/coordinator.h"
#include "tests/sim/world.h"

namespace pelab::sim {

class People {
 public:
  People(World& world, Coordinator& coordinator) : world_(world), coordinator_(coordinator) {}

  void Submit();
  void SubmitProbe();                           // eight short jobs that no other sweep has
  void Cancel();                                // a sweep or a job, of those that are known
  void Analyse();                               // a sweep
  bool Answered() const { return open_ == 0; }  // every submission and every cancel of a sweep

 private:
  void TrySubmit(const std::string& document, const std::string& token, bool fresh, int priority);
  void TryCancel(std::int64_t sweep_id);

  World& world_;
  Coordinator& coordinator_;
  std::vector<std::int64_t> sweeps_;
  int submissions_ = 0;
  int open_ = 0;
};

}  // namespace pelab::sim
