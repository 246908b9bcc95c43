// Simulated people: at random moments they submit and cancel sweeps, ask for analyses, pause,
// reprioritize, retry and extend sweeps, and drain workers. They repeat requests that need an
// answer.
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

// The file with an own encoding that one of the documents names.
inline constexpr char kOwnPath[] = "mine.pt";

// A few small sweeps that share jobs, one of which needs a file, and the recorded sweep.
const std::vector<std::string>& Documents();

class People {
 public:
  People(World& world, Coordinator& coordinator) : world_(world), coordinator_(coordinator) {}

  void Submit();
  void SubmitProbe();                                   // eight short jobs that no other sweep has
  void Cancel();                                        // cancels a known sweep or one of its jobs
  void Analyze();                                       // asks for analyses of a sweep
  void Control();                                       // pause, priority, retry or more seeds
  void Drain(const std::string& worker_id);             // or end its drain
  void LetGo(const std::vector<std::string>& workers);  // ends all pauses and drains
  // True if every submission, every cancel of a sweep, and the end of every pause and drain is
  // answered.
  bool Answered() const { return open_ == 0; }

  // Somebody else's sweep, which from now on they may change too.
  void Know(std::int64_t sweep_id) { sweeps_.insert(sweep_id); }
  // The sweeps and the tokens of acknowledged submissions, which everybody may know.
  const std::set<std::int64_t>& sweeps() const { return sweeps_; }
  const std::vector<std::string>& tokens() const { return tokens_; }

 private:
  void TrySubmit(const std::string& document, const std::string& token, bool fresh, int priority);
  // Repeats the request until it is answered.
  void Insist(std::function<void(Coordinator::Answer)> ask);
  void TryAgain(const std::shared_ptr<std::function<void(Coordinator::Answer)>>& ask);
  std::int64_t AnySweep();  // 0: no sweep is known

  World& world_;
  Coordinator& coordinator_;
  std::set<std::int64_t> sweeps_;
  std::vector<std::string> tokens_;
  int submissions_ = 0;
  int open_ = 0;
};

}  // namespace pelab::sim
