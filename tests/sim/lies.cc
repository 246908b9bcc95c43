#include "tests/sim/lies.h"

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/sim/truth.h"

namespace pelab::sim {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int kMostInt = std::numeric_limits<int>::max();
constexpr std::int64_t kMostInt64 = std::numeric_limits<std::int64_t>::max();

double OddNumber(Dice& dice) {
  return dice.OneOf(std::vector<double>{kNan, kInfinity, -kInfinity, -1.0, -1e300});
}

void Break(Dice& dice, v1::Started& started) {
  switch (dice.Draw(6)) {
    case 0:
      return started.set_epochs(started.epochs() + 1);
    case 1:
      return started.set_epochs(0);
    case 2:
      return started.set_start_epoch(-1);
    case 3:
      return started.set_start_epoch(kMostInt);
    case 4:
      return started.mutable_execution()->set_threads(dice.Chance(0.5) ? 0 : 1025);
    default:
      started.mutable_execution()->set_threads(1);
      return started.mutable_execution()->set_packing(dice.Chance(0.5) ? -1 : 65);
  }
}

void Break(Dice& dice, v1::Epoch& epoch) {
  switch (dice.Draw(10)) {
    case 0:
      return epoch.set_train_loss(OddNumber(dice));
    case 1:
      return epoch.set_test_loss(OddNumber(dice));
    case 2:
      return epoch.set_test_total(12);
    case 3:
      return epoch.set_train_total(kMostInt64);
    case 4:
      return epoch.set_test_correct(epoch.test_total() + 1);
    case 5:
      return epoch.set_train_correct(-1);
    case 6:
      return epoch.set_learning_rate(OddNumber(dice));
    case 7:
      return epoch.set_seconds(dice.Chance(0.5) ? OddNumber(dice) : 1e10);
    case 8:
      return epoch.set_epoch(epoch.epoch() + 1);
    default:
      return epoch.set_epoch(dice.Chance(0.5) ? -1 : kMostInt);
  }
}

void Break(Dice& dice, v1::HeadAblation& matrix) {
  switch (dice.Draw(9)) {
    case 0:
      return matrix.set_parameters_json(R"({"method":"guess"})");
    case 1:
      return matrix.set_parameters_json(OddText(dice));
    case 2:
      return matrix.set_version(dice.Chance(0.5) ? 0 : 77);
    case 3:
      return matrix.set_layers(dice.Chance(0.5) ? 2 : kMostInt);
    case 4:
      return matrix.set_total(matrix.total() - 1);
    case 5:
      return matrix.add_correct(0);
    case 6:
      return matrix.set_lost(0, matrix.lost(0) + 1);
    case 7:
      return matrix.set_nll(1, OddNumber(dice));
    default:
      return matrix.set_chance(0);
  }
}

void Break(Dice& dice, v1::Artifact& file) {
  switch (dice.Draw(4)) {
    case 0:
      return file.set_name(
          dice.OneOf(std::vector<std::string>{"", "../../etc/passwd", "/", "a\nb", "\xff"}));
    case 1:
      return file.set_sha256(std::string(64, 'e'));  // never stored
    case 2:
      return file.set_sha256(OddText(dice));
    default:
      return file.set_bytes(std::numeric_limits<std::uint64_t>::max());
  }
}

void Break(Dice& dice, v1::Finished& finished) {
  if (dice.Chance(0.5)) return finished.set_wall_seconds(OddNumber(dice));
  finished.set_outcome(static_cast<v1::AttemptOutcome>(
      dice.OneOf(std::vector<int>{0, v1::ATTEMPT_OUTCOME_LOST, 99})));
}

v1::Finished MadeUpEnd(Dice& dice) {
  v1::Finished finished;
  finished.set_outcome(dice.OneOf(std::vector<v1::AttemptOutcome>{
      v1::ATTEMPT_OUTCOME_SUCCEEDED, v1::ATTEMPT_OUTCOME_FAILED, v1::ATTEMPT_OUTCOME_PREEMPTED,
      v1::ATTEMPT_OUTCOME_CANCELLED}));
  finished.set_error_kind(static_cast<v1::ErrorKind>(dice.Draw(9)));
  finished.set_error(OddText(dice));
  finished.set_warning(OddText(dice));
  return finished;
}

}  // namespace

std::string OddText(Dice& dice) {
  switch (dice.Draw(7)) {
    case 0:
      return "";
    case 1:
      return "\xff\xfe\x80 and more";
    case 2:
      return std::string(dice.Chance(0.1) ? 200'000 : 17'000, 'x');
    case 3:
      return std::string("before\0after", 12);
    case 4:
      return "'); DROP TABLE jobs; --";
    case 5:
      return "\x1b[2J\x1b]0;title\a\xe2\x80\xae";
    default:
      return "{\"a\":[[[[";
  }
}

v1::Event MadeUpEvent(Dice& dice, int epochs) {
  v1::Event event;
  switch (dice.Draw(8)) {
    case 0:
      event.mutable_started()->set_epochs(3);
      break;
    case 1:
    case 2:
      *event.mutable_epoch() = EpochOf(epochs, dice.Draw(1 << 30));
      break;
    case 3: {
      v1::Analysis analysis;
      analysis.set_version(2);
      analysis.set_parameters_json("{}");
      *event.mutable_head_ablation() = MatrixOf(absl::StrCat(dice.Draw(1000)), analysis);
      break;
    }
    case 4:
      event.mutable_analysis()->set_name("layer_ablation");
      event.mutable_analysis()->set_version(1);
      event.mutable_analysis()->set_parameters_json("{}");
      event.mutable_analysis()->set_result_json("{}");
      break;
    case 5:
      event.mutable_artifact()->set_name("weights.safetensors");
      event.mutable_artifact()->set_sha256(WeightsOf(absl::StrCat(dice.Draw(1000))));
      event.mutable_artifact()->set_bytes(kWeightsBytes);
      break;
    case 6:
      event.mutable_checkpoint()->set_epoch(epochs);
      event.mutable_checkpoint()->set_sha256(WeightsOf(absl::StrCat(dice.Draw(1000))));
      event.mutable_checkpoint()->set_bytes(kWeightsBytes);
      break;
    default:
      *event.mutable_finished() = MadeUpEnd(dice);
      break;
  }
  return event;
}

void BreakRule(Dice& dice, v1::Event& event) {
  switch (event.body_case()) {
    case v1::Event::kStarted:
      return Break(dice, *event.mutable_started());
    case v1::Event::kEpoch:
      return Break(dice, *event.mutable_epoch());
    case v1::Event::kHeadAblation:
      return Break(dice, *event.mutable_head_ablation());
    case v1::Event::kArtifact:
      return Break(dice, *event.mutable_artifact());
    case v1::Event::kCheckpoint:
      return event.mutable_checkpoint()->set_epoch(dice.Chance(0.5) ? -1 : 99);
    case v1::Event::kFinished:
      return Break(dice, *event.mutable_finished());
    default:
      event.mutable_analysis()->set_name(OddText(dice));
      return event.mutable_analysis()->set_result_json("{");
  }
}

void MakeOdd(Dice& dice, v1::Hello& hello) {
  v1::Slot* const slot = hello.mutable_slots(0);
  switch (dice.Draw(11)) {
    case 0:
      return slot->set_pack(dice.OneOf(std::vector<int>{-5, 0, 64, 65, kMostInt}));
    case 1:
      return slot->set_slot(dice.Chance(0.5) ? -1 : kMostInt);
    case 2:
      return hello.add_slots()->CopyFrom(hello.slots(0));
    case 3:
      return hello.clear_slots();
    case 4:
      return slot->set_device_kind("tpu");
    case 5:
      return slot->set_device(OddText(dice));
    case 6:
      return hello.set_host(OddText(dice));
    case 7:
      return hello.set_capabilities_json(OddText(dice));
    case 8:
      return hello.set_protocol(2);
    case 9:
      return hello.set_worker_id(dice.Chance(0.5) ? "" : std::string(129, 'i'));
    default:
      return slot->set_memory_bytes(std::numeric_limits<std::uint64_t>::max());
  }
}

}  // namespace pelab::sim
