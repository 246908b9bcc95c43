// People under simulation: they submit, cancel, ask for analyses, and pause, hurry, retry and extend
// sweeps and drain workers at random moments; what has to be answered they ask again.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/sim/coordinator.h"
#include "tests/sim/world.h"

namespace pelab::sim {

class People {
 public:
  People(World& world, Coordinator& coordinator) : world_(world), coordinator_(coordinator) {}

  void Submit();
  void SubmitProbe();                                   // eight short jobs that no other sweep has
  void Cancel();                                        // a sweep or a job, of those that are known
  void Analyse();                                       // a sweep
  void Steer();                                         // pause, priority, retry or more seeds
  void Drain(const std::string& worker_id);             // or take it back
  void LetGo(const std::vector<std::string>& workers);  // no pauses and no drains any more
  // Every submission, every cancel of a sweep and the end of every pause and drain.
  bool Answered() const { return open_ == 0; }

 private:
  void TrySubmit(const std::string& document, const std::string& token, bool fresh, int priority);
  // Asks again until it is answered.
  void Insist(std::function<void(Coordinator::Answer)> ask);
  void TryAgain(const std::shared_ptr<std::function<void(Coordinator::Answer)>>& ask);
  std::int64_t AnySweep();  // 0: none is known

  World& world_;
  Coordinator& coordinator_;
  std::set<std::int64_t> sweeps_;
  int submissions_ = 0;
  int open_ = 0;
};

}  // namespace pelab::sim
