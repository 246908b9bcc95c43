#include "tests/sim/people.h"

#include <iterator>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/experiment/analysis.h"
#include "tests/sim/recording.h"
#include "tests/sim/truth.h"

namespace pelab::sim {
namespace {

constexpr absl::Duration kTimeout = absl::Seconds(15);
constexpr std::uint64_t kTriedAgain = 6;  // jobs of a sweep to retry
constexpr auto kNobodyWaits = [](const absl::StatusOr<store::WriteResult>&) {};

// With the examples that the results of truth.h have.
std::string DistanceTask() {
  return absl::StrCat("{name: distance, train_examples: ", kExamples,
                      ", test_examples: ", kExamples, "}");
}

std::vector<store::Analysis> SomeAnalyses(const experiment::Sweep& sweep) {
  std::vector<store::Analysis> analyses;
  for (const experiment::Analysis& analysis : sweep.analyses()) {
    analyses.push_back(
        {analysis.name, analysis.version, experiment::CanonicalParameters(analysis)});
  }
  return analyses;
}

}  // namespace

const std::vector<std::string>& Documents() {
  static const auto* const documents = [] {
    auto* const all = new std::vector<std::string>;
    const auto add = [&](const char* pes, const char* seeds, int epochs, const char* analyses) {
      all->push_back(absl::StrCat("name: s", all->size(), "\nprotocol: clean\npe: ", pes,
                                  "\ntask: ", DistanceTask(), "\nseed: ", seeds,
                                  "\nmodel: {d_model: 8, d_ff: 16, heads: 2, layers: 1}\n",
                                  "train: {epochs: ", epochs, "}\nanalyses: ", analyses, "\n"));
    };
    add("[nope, rope]", "[0, 1]", 3, "[head_ablation]");
    add("[rope]", "[0, 1, 2]", 3, "[{name: head_ablation, method: mean}]");
    add("[nope, rope, alibi]", "[1, 2]", 3, "[]");
    add("[absolute]", "[0]", 6, "[head_ablation]");
    add("[rope]", "[5]", 1, "[]");
    add("[nope, alibi]", "0..5", 2, "[]");
    add(absl::StrCat("[rope, {name: own, file: ", kOwnPath, "}]").c_str(), "[0, 1]", 2, "[]");
    all->push_back(RecordedDocument());
    return all;
  }();
  return *documents;
}

void People::Submit() {
  TrySubmit(world_.OneOf(Documents()), absl::StrCat("token-", ++submissions_), world_.Chance(0.1),
            static_cast<int>(world_.Draw(3)));
}

void People::SubmitProbe() {
  TrySubmit(
      absl::StrCat("name: probe\nprotocol: clean\npe: nope\ntask: ", DistanceTask(),
                   "\nseed: 100..107\n"
                   "model: {d_model: 8, d_ff: 16, heads: 2, layers: 1}\ntrain: {epochs: 1}\n"),
      "probe", /*fresh=*/false, /*priority=*/0);
}

void People::TrySubmit(const std::string& document, const std::string& token, bool fresh,
                       int priority) {
  Insist([=, this](const Coordinator::Answer& answer) {
    coordinator_.Submit(document, token, fresh, priority,
                        [=, this](absl::StatusOr<store::WriteResult> result) {
                          if (result.ok()) {
                            sweeps_.insert(std::get<store::SweepStored>(*result).sweep_id);
                            tokens_.push_back(token);
                          }
                          answer(std::move(result));
                        });
  });
}

void People::Insist(std::function<void(Coordinator::Answer)> ask) {
  open_ += 1;
  TryAgain(std::make_shared<std::function<void(Coordinator::Answer)>>(std::move(ask)));
}

void People::TryAgain(const std::shared_ptr<std::function<void(Coordinator::Answer)>>& ask) {
  const auto over = std::make_shared<bool>(false);  // answered, or asked again
  const auto again = [=, this] {
    if (!std::exchange(*over, true)) TryAgain(ask);
  };
  world_.After(kTimeout, again);
  (*ask)([=, this](const absl::StatusOr<store::WriteResult>& result) {
    if (!result.ok()) return world_.After(absl::Seconds(1), again);
    if (!std::exchange(*over, true)) open_ -= 1;
  });
}

std::int64_t People::AnySweep() {
  if (sweeps_.empty()) return 0;
  return *std::next(sweeps_.begin(), static_cast<std::ptrdiff_t>(world_.Draw(sweeps_.size())));
}

void People::Cancel() {
  const std::int64_t sweep_id = AnySweep();
  if (world_.Chance(0.5)) {
    if (sweep_id == 0) return;
    return Insist([=, this](const Coordinator::Answer& answer) {
      coordinator_.Cancel(store::CancelSweep{sweep_id, absl::ToUnixMillis(world_.Wall())}, answer);
    });
  }
  const std::int64_t job_id = coordinator_.JobOf(sweep_id, world_.Draw(100));
  if (job_id == 0) return;
  coordinator_.Cancel(store::CancelJob{job_id, absl::ToUnixMillis(world_.Wall())}, kNobodyWaits);
}

void People::Analyze() {
  const std::int64_t sweep_id = AnySweep();
  if (sweep_id == 0) return;
  std::vector<store::Analysis> analyses = SomeAnalyses(*Parsed(Documents()[world_.Draw(2)]));
  coordinator_.Analyze(sweep_id, std::move(analyses), kNobodyWaits);
}

void People::Control() {
  const std::int64_t sweep_id = AnySweep();
  if (sweep_id == 0) return;
  switch (world_.Draw(6)) {
    case 0:
    case 1:
      return coordinator_.Control({.sweep_id = sweep_id, .paused = world_.Chance(0.6)},
                                  kNobodyWaits);
    case 2:
      return coordinator_.Control(
          {.sweep_id = sweep_id, .priority = static_cast<int>(world_.Draw(5))}, kNobodyWaits);
    case 3:
      return coordinator_.RetryFailed(sweep_id, 0, kNobodyWaits);
    case 4:  // most of these jobs need no retry
      for (std::uint64_t i = 0; i < kTriedAgain; ++i) {
        const std::int64_t job_id = coordinator_.JobOf(sweep_id, i);
        if (job_id != 0) coordinator_.RetryJob(job_id, world_.Chance(0.3), kNobodyWaits);
      }
      return;
    default:
      return coordinator_.Extend(sweep_id, absl::StrCat(world_.Draw(8)), kNobodyWaits);
  }
}

void People::Drain(const std::string& worker_id) {
  static const std::vector<v1::Drain::Mode>& modes = *new std::vector<v1::Drain::Mode>{
      v1::Drain::FINISH, v1::Drain::CHECKPOINT, v1::Drain::KILL, v1::Drain::RESUME};
  coordinator_.Drain(worker_id, world_.OneOf(modes), kNobodyWaits);
}

void People::LetGo(const std::vector<std::string>& workers) {
  for (const std::int64_t sweep_id : sweeps_) {
    Insist([=, this](const Coordinator::Answer& answer) {
      coordinator_.Control({.sweep_id = sweep_id, .paused = false}, answer);
    });
  }
  for (const std::string& worker : workers) {
    Insist([=, this](const Coordinator::Answer& answer) {
      coordinator_.Drain(worker, v1::Drain::RESUME, answer);
    });
  }
}

}  // namespace pelab::sim
