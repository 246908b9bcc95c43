#include "tests/sim/settlers.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/sim/truth.h"

namespace pelab::sim {
namespace {

constexpr absl::Duration kSettlerTimeout = absl::Seconds(15);
constexpr double kKilled = 0.06;    // commands, at each answer
constexpr double kBudget = 0.15;    // rounds before which a budget is spent
constexpr double kPutAside = 0.04;  // answers after which a claim is put aside

}  // namespace

// Accuracies of the simulation are uniform (truth.h), so that the claims `sure` and `wrong` are
// decided soon and cells leave the rounds, and the others take longer.
const std::vector<std::string>& Sheets() {
  static const auto* const sheets = [] {
    auto* const all = new std::vector<std::string>;
    const auto add = [&](const char* analyses, const char* claims) {
      all->push_back(absl::StrCat(
          "name: sheet-", all->size(), "\nfalse_discovery_rate: 0.5\nmax_seeds: 6\n",
          "sweep:\n  name: of-sheet\n  protocol: clean\n  pe: [nope, rope, alibi]\n",
          "  task: {name: distance, train_examples: ", kExamples, ", test_examples: ", kExamples,
          "}\n  model: {d_model: 8, d_ff: 16, heads: 2, layers: 1}\n  train: {epochs: 2}\n",
          "  analyses: ", analyses, "\nclaims:\n",
          "  - {id: sure, between: {metric: test_accuracy, cell: pe=alibi, low: 0, high: 1}}\n",
          "  - {id: wrong, above: {metric: test_accuracy, a: pe=rope, b: pe=alibi, by: 1}}\n",
          claims));
    };
    add("[]",
        "  - {id: even, above: {metric: test_accuracy, a: pe=rope, b: pe=nope}}\n"
        "  - {id: low, between: {metric: train_accuracy, cell: pe=nope, low: 0, high: 0.7}}\n");
    add("[head_ablation]",
        "  - {id: heads, above: {metric: max_drop, a: pe=rope, b: pe=nope}}\n"
        "  - {id: most, above: {metric: test_accuracy, a: pe=nope, b: pe=alibi, by: -0.5}}\n");
    return all;
  }();
  return *sheets;
}

Settler::Settler(World& world, Coordinator& coordinator, People& people, std::string document,
                 int number)
    : world_(world),
      coordinator_(coordinator),
      people_(people),
      document_(std::move(document)),
      number_(number),
      dice_(world.DiceFor(absl::StrCat("settler ", number))),
      aside_dice_(world.DiceFor(absl::StrCat("claims put aside by settler ", number))),
      any_seeds_(dice_.Chance(0.5)),
      slots_(static_cast<int>(1 + dice_.Draw(8))) {}

void Settler::Start() { Come(dice_.Between(absl::ZeroDuration(), absl::Seconds(8))); }

void Settler::Come(absl::Duration after) {
  ++question_;
  Then(after, &Settler::Begin);
}

void Settler::Then(absl::Duration after, void (Settler::*what)()) {
  world_.After(after, [this, what, question = question_] {
    if (question == question_) (this->*what)();
  });
}

void Settler::Begin() {
  world_.Note("settler ", number_, " begins");
  state_.reset();
  stopped_by_.clear();
  again_ = true;
  Ask();
}

void Settler::Ask() {
  const std::uint64_t question = ++question_;
  Then(kSettlerTimeout, &Settler::Ask);
  Send([this, question](const absl::StatusOr<v1::Settlement>& settlement) {
    if (question != question_) return;
    ++question_;
    if (settlement.ok()) return OnAnswer(*settlement);
    OnError(settlement.status());
  });
}

void Settler::Send(const Coordinator::SheetAnswer& answer) {
  if (!registered_) {
    v1::RegisterSheetRequest request;
    request.set_document(document_);
    request.set_file_name("sheet.yaml");
    request.set_any_seeds(any_seeds_);
    request.set_slots(slots_);
    return coordinator_.RegisterSheet(request, answer);
  }
  v1::AdvanceRequest request;
  request.mutable_sheet()->set_sheet(document_.substr(6, document_.find('\n') - 6));
  request.set_again(again_);
  request.set_stopped_by(stopped_by_);
  if (!put_aside_.empty()) request.add_put_aside(put_aside_);
  if (state_ && state_->has_next() && stopped_by_.empty()) {
    request.set_begin_round(state_->next().round());
  }
  coordinator_.Advance(request, answer);
}

void Settler::OnError(const absl::Status& status) {
  world_.Note("settler ", number_, " is told: ", std::string(status.message()));
  if (absl::IsInvalidArgument(status) || absl::IsAlreadyExists(status)) {
    world_.Violate(absl::StrCat("a settler is refused: ", std::string(status.message())));
  }
  if (absl::IsUnavailable(status) || absl::IsResourceExhausted(status)) {
    return Then(absl::Seconds(1), &Settler::Ask);
  }
  Come(dice_.Between(absl::Seconds(1), absl::Seconds(10)));  // the command ends with the error
}

void Settler::OnAnswer(const v1::Settlement& settlement) {
  if (registered_) again_ = false;
  registered_ = true;
  state_ = settlement;
  if (settlement.sheet().has_sweep_id()) people_.Know(settlement.sheet().sweep_id());
  if (!settlement.has_open() && !settlement.has_next()) {
    world_.Note("settler ", number_, " is done");
    done_ = true;
    return;
  }
  put_aside_.clear();
  if (!calm_ && !settlement.claims().empty() && aside_dice_.Chance(kPutAside)) {
    const auto at = aside_dice_.Draw(static_cast<std::uint64_t>(settlement.claims_size()));
    put_aside_ = settlement.claims(static_cast<int>(at)).claim();
    world_.Note("settler ", number_, " puts ", put_aside_, " aside");
  }
  for (const v1::BlockedJob& job : settlement.open().blocked()) {
    world_.Note("settler ", number_, " lacks job ", job.job_id(), ": ", job.reason());
  }
  const bool ends = !stopped_by_.empty() || settlement.open().blocked_jobs() > 0;
  if (ends || (!calm_ && dice_.Chance(kKilled))) {
    return Come(dice_.Between(absl::Milliseconds(10), absl::Seconds(15)));
  }
  if (settlement.has_open()) {
    return Then(dice_.Between(absl::Seconds(1), absl::Seconds(9)), &Settler::Ask);
  }
  if (!calm_ && dice_.Chance(kBudget)) stopped_by_ = "--budget 1h: 58m were spent";
  Ask();
}

}  // namespace pelab::sim
