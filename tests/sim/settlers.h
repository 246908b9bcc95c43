// A simulated person who settles a claim sheet as `pelab settle` does (client/claims/settler.h):
// registers it, asks for one round after the other, and settles it again if a round cannot be
// completed. The command may be killed at any moment, or end because its budget is spent.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/sim/coordinator.h"
#include "tests/sim/people.h"
#include "tests/sim/world.h"

namespace pelab::sim {

class Settler {
 public:
  // Settles the document, as its `number`-th settler.
  Settler(World& world, Coordinator& coordinator, People& people, std::string document, int number);

  void Start();                  // soon
  void Calm() { calm_ = true; }  // nothing stops it any more
  bool done() const { return done_; }

 private:
  void Begin();  // the command begins
  void Come(absl::Duration after);
  void Ask();
  void Send(const Coordinator::SheetAnswer& answer);
  void OnAnswer(const v1::Settlement& settlement);
  void OnError(const absl::Status& status);
  // Runs `what` later, unless the command has ended or has asked again by then.
  void Then(absl::Duration after, void (Settler::*what)());

  World& world_;
  Coordinator& coordinator_;
  People& people_;
  const std::string document_;
  const int number_;
  Dice dice_, aside_dice_;
  const bool any_seeds_;
  const int slots_;
  std::optional<v1::Settlement> state_;  // what this command was last told
  std::string stopped_by_;
  std::string put_aside_;    // the claim that the next request puts aside; empty: none
  bool registered_ = false;  // a command of this settler was told so
  bool again_ = false;
  std::uint64_t question_ = 0;  // counts questions and commands
  bool calm_ = false;
  bool done_ = false;
};

// Sheets about the same few cells: one about accuracies, and one that needs head ablations too.
const std::vector<std::string>& Sheets();

}  // namespace pelab::sim
