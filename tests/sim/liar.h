// A worker that lies. It speaks to the coordinator over connections of its own, without the agent's
// session: about attempts of others, with tokens that it should not know; about its own attempts,
// with values that cannot be; and in words that the protocol does not have. It takes jobs and sits
// on them. With a second connection it takes over its own session, or says that it is nobody else's
// worker. All of its draws are its own, so that histories without it stay as they are.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/sim/bounds.h"
#include "tests/sim/coordinator.h"
#include "tests/sim/ledger.h"
#include "tests/sim/wire.h"
#include "tests/sim/world.h"

namespace pelab::sim {

class Liar {
 public:
  Liar(World& world, Ledger& ledger, Coordinator& coordinator, const Bounds& bounds);

  void Start();
  // Everybody else has no faults any more. It leaves, or it sits on what it gets from now on.
  void Calm(bool leaves);

 private:
  enum class Plan {
    kSit,     // reports nothing
    kRepeat,  // reports the same again and again
    kTrain,   // reports numbers that are made up, to the end
    kBreak,   // the same until an event breaks a rule
    kEnd,     // ends at once, in some way
  };
  struct Taken {  // an attempt that it was given
    v1::Assignment assignment;
    Plan plan = Plan::kSit;
    std::uint64_t sequence = 0;  // of the last event that it sent
    bool started = false;
    int epoch = 0;
    int analyses = 0;
    int steps_to_lie = 0;
  };
  struct Line {  // a connection
    std::string id;
    std::shared_ptr<Wire> wire;
    bool welcomed = false;
    std::uint64_t heartbeats = 0;
  };

  void Connect(Line& line);
  void Disconnect(Line& line);
  void Receive(Line& line, const v1::CoordinatorMessage& message);
  void OnWelcome(const v1::Welcome& welcome);
  void Take(const v1::Assignment& assignment);
  void Send(Line& line, v1::WorkerMessage message);
  v1::WorkerMessage Hello(const Line& line);
  void AddHeld(const Line& line, google::protobuf::RepeatedPtrField<v1::HeldAttempt>& held);

  void NextHeartbeat();
  // Its own attempts.
  void NextStep(std::int64_t attempt_id);
  void Step(Taken& taken);
  v1::Event TrainedEvent(Taken& taken);
  v1::Event RepeatedEvent(Taken& taken);
  void Report(Taken& taken, v1::Event event);
  // Lies.
  void NextLie();
  void Lie();
  void LieAboutOthers(Line& line);
  v1::Event EventOfAnother(const Ledger::Known& known);
  void LogForOthers(Line& line);
  void BreakProtocol(Line& line);
  Ledger::Known AnyAttempt(const Line& line);
  Line* AnyLine();  // null: none is welcome

  World& world_;
  Ledger& ledger_;
  Coordinator& coordinator_;
  const Bounds& bounds_;
  Dice dice_;
  Link link_;
  std::array<Line, 2> lines_;
  std::map<std::int64_t, Taken> taken_;
  const int slots_;
  const int pack_;
  const absl::Duration between_;  // lies
  bool calm_ = false;
  bool gone_ = false;
};

}  // namespace pelab::sim
