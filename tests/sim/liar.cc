#include "tests/sim/liar.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/sim/lies.h"
#include "tests/sim/truth.h"

namespace pelab::sim {
namespace {

constexpr char kId[] = "liar";
constexpr char kGhost[] = "ghost";  // nobody's id
constexpr absl::Duration kStep = absl::Seconds(2);
constexpr absl::Duration kCalmStep = absl::Seconds(30);

}  // namespace

Liar::Liar(World& world, Ledger& ledger, Coordinator& coordinator, const Bounds& bounds)
    : world_(world),
      ledger_(ledger),
      coordinator_(coordinator),
      bounds_(bounds),
      dice_(world.DiceFor("liar's lies")),
      slots_(1 + static_cast<int>(dice_.Draw(3))),
      pack_(dice_.Chance(0.5) ? 1 : static_cast<int>(dice_.Draw(70))),
      between_(dice_.Between(absl::Milliseconds(500), absl::Seconds(6))) {
  lines_[0].id = kId;
  lines_[1].id = dice_.Chance(0.5) ? kId : kGhost;
  ledger_.Distrust(kId);
  ledger_.Distrust(kGhost);
}

void Liar::Start() {
  Connect(lines_[0]);
  NextHeartbeat();
  NextLie();
}

void Liar::Calm(bool leaves) {
  calm_ = true;
  gone_ = leaves;
  for (Line& line : lines_) {
    if (leaves && line.wire) Disconnect(line);
  }
}

// Connections ----------------------------------------------------------------------------------

void Liar::Connect(Line& line) {
  if (gone_ || line.wire) return;
  line.wire = coordinator_.Connect(link_);
  if (!line.wire) {
    return world_.After(dice_.Between(absl::Seconds(1), absl::Seconds(10)),
                        [this, &line] { Connect(line); });
  }
  line.wire->client = [this, &line, self = line.wire.get()](const v1::CoordinatorMessage& message) {
    if (line.wire.get() == self) Receive(line, message);
  };
  line.wire->client_closed = [this, &line, self = line.wire.get()] {
    if (line.wire.get() == self) Disconnect(line);
  };
  if (dice_.Chance(0.05)) Send(line, {});
  Send(line, Hello(line));
}

void Liar::Disconnect(Line& line) {
  line.wire->client = nullptr;
  line.wire->client_closed = nullptr;
  line.wire->CloseUp();
  line.wire.reset();
  line.welcomed = false;
  const bool again = &line == &lines_[0] || dice_.Chance(0.3);
  if (!again || gone_) return;
  world_.After(dice_.Between(absl::Seconds(1), absl::Seconds(10)),
               [this, &line] { Connect(line); });
}

void Liar::Send(Line& line, v1::WorkerMessage message) { line.wire->SendUp(std::move(message)); }

v1::WorkerMessage Liar::Hello(const Line& line) {
  v1::WorkerMessage message;
  v1::Hello& hello = *message.mutable_hello();
  hello.set_protocol(1);
  hello.set_worker_id(line.id);
  hello.set_name(line.id);
  hello.set_host(absl::StrCat("host of ", line.id));
  hello.set_version("1");
  for (int i = 0; i < slots_; ++i) {
    v1::Slot& slot = *hello.add_slots();
    slot.set_slot(i);
    slot.set_device("cpu");
    slot.set_device_kind("cpu");
    slot.set_pack(pack_);
  }
  AddHeld(line, *hello.mutable_held());
  if (!calm_ && dice_.Chance(0.25)) {
    MakeOdd(dice_, hello);
    ledger_.ToldLie();
  }
  return message;
}

// It names its own attempts, and now and then those of others.
void Liar::AddHeld(const Line& line, google::protobuf::RepeatedPtrField<v1::HeldAttempt>& held) {
  for (const auto& [id, taken] : taken_) {
    v1::HeldAttempt& attempt = *held.Add();
    attempt.set_attempt_id(id);
    attempt.set_token(taken.assignment.token());
    attempt.set_slot(taken.assignment.slot());
  }
  if (calm_ || !dice_.Chance(0.3)) return;
  const Ledger::Known known = AnyAttempt(line);
  v1::HeldAttempt& claimed = *held.Add();
  claimed.set_attempt_id(known.attempt_id);
  claimed.set_token(known.token);
  claimed.set_slot(static_cast<int>(dice_.Draw(3)) - 1);
  ledger_.ToldLie();
}

void Liar::Receive(Line& line, const v1::CoordinatorMessage& message) {
  switch (message.message_case()) {
    case v1::CoordinatorMessage::kWelcome:
      line.welcomed = true;
      return OnWelcome(message.welcome());
    case v1::CoordinatorMessage::kAssignment:
      return Take(message.assignment());
    case v1::CoordinatorMessage::kPack:
      for (const v1::Assignment& each : message.pack().assignments()) Take(each);
      return;
    case v1::CoordinatorMessage::kStop:
      if (dice_.Chance(0.8)) taken_.erase(message.stop().attempt_id());
      return;
    default:
      return;  // it does not care what is acknowledged
  }
}

void Liar::OnWelcome(const v1::Welcome& welcome) {
  for (const v1::HeldAnswer& answer : welcome.held()) {
    const auto found = taken_.find(answer.attempt_id());
    if (found == taken_.end()) continue;
    if (!answer.accepted()) {
      taken_.erase(found);
    } else if (dice_.Chance(0.8)) {
      found->second.sequence = answer.acknowledged();
    }
  }
}

void Liar::NextHeartbeat() {
  world_.After(bounds_.heartbeat() * (0.5 + dice_.Unit()), [this] {
    if (gone_) return;
    for (Line& line : lines_) {
      if (!line.welcomed) continue;
      v1::WorkerMessage message;
      message.mutable_heartbeat()->set_sequence(++line.heartbeats);
      AddHeld(line, *message.mutable_heartbeat()->mutable_held());
      Send(line, std::move(message));
    }
    NextHeartbeat();
  });
}

// Its own attempts -----------------------------------------------------------------------------

void Liar::Take(const v1::Assignment& assignment) {
  static const auto& plans =
      *new std::vector<Plan>{Plan::kSit,   Plan::kRepeat, Plan::kTrain, Plan::kTrain,
                             Plan::kBreak, Plan::kBreak,  Plan::kBreak, Plan::kEnd};
  static const auto& calm_plans = *new std::vector<Plan>{Plan::kSit, Plan::kRepeat};
  const std::int64_t id = assignment.attempt_id();
  Taken& taken = taken_[id];
  taken = {.assignment = assignment,
           .plan = dice_.OneOf(calm_ ? calm_plans : plans),
           .steps_to_lie = static_cast<int>(dice_.Draw(6))};
  NextStep(id);
}

void Liar::NextStep(std::int64_t attempt_id) {
  world_.After((calm_ ? kCalmStep : kStep) * dice_.Unit(), [this, attempt_id] {
    const auto found = taken_.find(attempt_id);
    if (gone_ || found == taken_.end() || found->second.plan == Plan::kSit) return;
    Step(found->second);
    NextStep(attempt_id);
  });
}

void Liar::Step(Taken& taken) {
  if (!lines_[0].welcomed) return;
  v1::Event event;
  switch (taken.plan) {
    case Plan::kSit:
      return;
    case Plan::kRepeat:
      event = RepeatedEvent(taken);
      break;
    case Plan::kEnd:
      while (!event.has_finished()) event = MadeUpEvent(dice_, 0);
      break;
    case Plan::kTrain:
    case Plan::kBreak:
      event = TrainedEvent(taken);
      break;
  }
  if (taken.plan == Plan::kBreak && taken.steps_to_lie-- == 0) {
    if (dice_.Chance(0.3)) event = MadeUpEvent(dice_, taken.epoch);
    BreakRule(dice_, event);
    ledger_.ToldLie();
  }
  const bool over = event.has_finished();
  Report(taken, std::move(event));
  // It forgets what it has ended, whether or not that was stored.
  if (over) taken_.erase(taken.assignment.attempt_id());
}

// What a trainer would report next, with numbers that are made up.
v1::Event Liar::TrainedEvent(Taken& taken) {
  const v1::Assignment& assignment = taken.assignment;
  const int epochs = EpochsOf(assignment.spec_json());
  v1::Event event;
  if (!taken.started) {
    taken.started = true;
    taken.epoch = assignment.has_weights() ? epochs : 0;
    v1::Started& started = *event.mutable_started();
    started.set_epochs(epochs);
    started.set_start_epoch(taken.epoch);
    started.set_environment_json(OddText(dice_));
    started.set_better_alone(dice_.Chance(0.2));
    if (assignment.has_execution()) {
      *started.mutable_execution() = assignment.execution();
    } else if (dice_.Chance(0.7)) {
      started.mutable_execution()->set_threads(1 + static_cast<int>(dice_.Draw(64)));
      started.mutable_execution()->set_packing(1 + static_cast<int>(dice_.Draw(64)));
    }
  } else if (taken.epoch < epochs) {
    *event.mutable_epoch() = EpochOf(taken.epoch++, dice_.Draw(1 << 30));
  } else if (taken.analyses < assignment.analyses_size() && dice_.Chance(0.9)) {
    *event.mutable_head_ablation() =
        MatrixOf(absl::StrCat(dice_.Draw(1000)), assignment.analyses(taken.analyses++));
  } else {
    event.mutable_finished()->set_outcome(v1::ATTEMPT_OUTCOME_SUCCEEDED);
    event.mutable_finished()->set_warning(OddText(dice_));
  }
  return event;
}

// Its hello, and from then on a checkpoint that nobody has: it is stored and says nothing new.
v1::Event Liar::RepeatedEvent(Taken& taken) {
  if (!taken.started) return TrainedEvent(taken);
  if (dice_.Chance(0.5)) taken.sequence = 0;  // its events come once more
  v1::Event event;
  event.mutable_checkpoint()->set_epoch(taken.epoch);
  event.mutable_checkpoint()->set_sha256(std::string(64, 'c'));
  event.mutable_checkpoint()->set_bytes(1);
  return event;
}

void Liar::Report(Taken& taken, v1::Event event) {
  event.set_attempt_id(taken.assignment.attempt_id());
  event.set_token(taken.assignment.token());
  event.set_sequence(++taken.sequence);
  v1::WorkerMessage message;
  *message.mutable_events()->add_events() = std::move(event);
  Send(lines_[0], std::move(message));
}

// Lies -----------------------------------------------------------------------------------------

void Liar::NextLie() {
  world_.After(between_ * (0.5 + dice_.Unit()), [this] {
    if (gone_ || calm_) return;
    Lie();
    NextLie();
  });
}

Liar::Line* Liar::AnyLine() {
  Line& line = lines_[dice_.Draw(lines_.size())];
  return line.welcomed ? &line : nullptr;
}

Ledger::Known Liar::AnyAttempt(const Line& line) {
  std::vector<Ledger::Known> all = ledger_.AttemptsOfOthers(line.id);
  if (dice_.Chance(0.7)) {
    const auto has_ended = [](const Ledger::Known& known) { return !known.open; };
    if (!std::all_of(all.begin(), all.end(), has_ended)) std::erase_if(all, has_ended);
  }
  if (all.empty()) return {.attempt_id = static_cast<std::int64_t>(dice_.Draw(100))};
  Ledger::Known known = dice_.OneOf(all);
  if (dice_.Chance(0.3)) known.token += 1;
  return known;
}

void Liar::Lie() {
  if (!lines_[1].wire && dice_.Chance(0.1)) Connect(lines_[1]);
  Line* const line = AnyLine();
  if (line == nullptr) return;
  world_.Note(line->id, " lies");
  ledger_.ToldLie();
  switch (dice_.Draw(10)) {
    case 0:
      return LogForOthers(*line);
    case 1:
      return BreakProtocol(*line);
    case 2:
      return Disconnect(*line);
    default:
      return LieAboutOthers(*line);
  }
}

void Liar::LieAboutOthers(Line& line) {
  v1::WorkerMessage message;
  for (std::uint64_t i = 1 + dice_.Draw(4); i != 0; --i) {
    v1::Event event = EventOfAnother(AnyAttempt(line));
    if (dice_.Chance(0.2)) *message.mutable_events()->add_events() = event;
    *message.mutable_events()->add_events() = std::move(event);
  }
  Send(line, std::move(message));
}

v1::Event Liar::EventOfAnother(const Ledger::Known& known) {
  v1::Event event = MadeUpEvent(dice_, known.epochs_done);
  if (dice_.Chance(0.3)) BreakRule(dice_, event);
  event.set_attempt_id(known.attempt_id);
  event.set_token(known.token);
  event.set_sequence(known.stored + 1);
  if (dice_.Chance(0.3)) event.set_sequence(1 + dice_.Draw(known.stored + 5));
  return event;
}

void Liar::LogForOthers(Line& line) {
  const Ledger::Known known = AnyAttempt(line);
  v1::WorkerMessage message;
  v1::LogChunk& log = *message.mutable_log();
  log.set_attempt_id(known.attempt_id);
  log.set_token(known.token);
  if (!taken_.empty() && dice_.Chance(0.3)) {  // its own log
    log.set_attempt_id(taken_.begin()->first);
    log.set_token(taken_.begin()->second.assignment.token());
  }
  log.set_offset(dice_.Chance(0.3) ? (std::uint64_t{1} << 62) + dice_.Draw(3) : dice_.Draw(1000));
  log.set_data(absl::StrCat("a lie ", OddText(dice_)));
  Send(line, std::move(message));
}

// The coordinator ends the session, or ignores the message.
void Liar::BreakProtocol(Line& line) {
  v1::WorkerMessage message;
  switch (dice_.Draw(5)) {
    case 0:
      break;  // no message at all
    case 1:
      message = Hello(line);
      break;
    case 2:
      message.mutable_events()->add_events()->set_sequence(1);  // no body
      break;
    case 3:
      *message.mutable_events()->add_events() = EventOfAnother(AnyAttempt(line));
      message.mutable_events()->mutable_events(0)->set_sequence(dice_.Chance(0.5) ? 0 : ~0ull);
      break;
    default:
      message.mutable_goodbye();  // it holds jobs
      break;
  }
  Send(line, std::move(message));
}

}  // namespace pelab::sim
