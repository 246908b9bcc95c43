#include "tests/sim/people.h"

#include <utility>

namespace pelab::sim {
namespace {

constexpr absl::Duration kTimeout = absl::Seconds(15);

// A few small sweeps that share jobs.
const std::vector<std::string>& Documents() {
  static const auto* const documents = [] {
    auto* const all = new std::vector<std::string>;
    const auto add = [&](const char* pes, const char* seeds, int epochs, const char* analyses) {
      all->push_back(absl::StrCat("name: s", all->size(), "\nprotocol: clean\npe: ", pes,
                                  "\ntask: distance\nseed: ", seeds,
                                  "\nmodel: {d_model: 8, d_ff: 16, heads: 2, layers: 1}\n",
                                  "train: {epochs: ", epochs, "}\nanalyses: ", analyses, "\n"));
    };
    add("[nope, rope]", "[0, 1]", 3, "[head_ablation]");
    add("[rope]", "[0, 1, 2]", 3, "[{name: head_ablation, method: mean}]");
    add("[nope, rope, alibi]", "[1, 2]", 3, "[]");
    add("[absolute]", "[0]", 6, "[head_ablation]");
    add("[rope]", "[5]", 1, "[]");
    return all;
  }();
  return *documents;
}

std::vector<store::Analysis> SomeAnalyses(const spec::Sweep& sweep) {
  std::vector<store::Analysis> analyses;
  for (const spec::Analysis& analysis : sweep.analyses()) {
    analyses.push_back({analysis.name, analysis.version, spec::CanonicalParameters(analysis)});
  }
  return analyses;
}

}  // namespace

void People::Submit() {
  open_ += 1;
  TrySubmit(world_.OneOf(Documents()), absl::StrCat("token-", ++submissions_), world_.Chance(0.1),
            static_cast<int>(world_.Draw(3)));
}

void People::SubmitProbe() {
  open_ += 1;
  TrySubmit(
      "name: probe\nprotocol: clean\npe: nope\ntask: distance\nseed: 100..107\n"
      "model: {d_model: 8, d_ff: 16, heads: 2, layers: 1}\ntrain: {epochs: 1}\n",
      "probe", /*fresh=*/false, /*priority=*/0);
}

void People::TrySubmit(const std::string& document, const std::string& token, bool fresh,
                       int priority) {
  const auto over = std::make_shared<bool>(false);  // answered, or asked again
  const auto again = [=, this] {
    if (!std::exchange(*over, true)) TrySubmit(document, token, fresh, priority);
  };
  world_.After(kTimeout, again);
  coordinator_.Submit(document, token, fresh, priority,
                      [=, this](absl::StatusOr<store::WriteResult> result) {
                        if (!result.ok()) return world_.After(absl::Seconds(1), again);
                        if (std::exchange(*over, true)) return;  // too late
                        open_ -= 1;
                        sweeps_.push_back(std::get<store::SweepStored>(*result).sweep_id);
                      });
}

void People::Cancel() {
  if (sweeps_.empty()) return;
  const std::int64_t sweep_id = world_.OneOf(sweeps_);
  if (world_.Chance(0.5)) {
    open_ += 1;
    return TryCancel(sweep_id);
  }
  const std::int64_t job_id = coordinator_.JobOf(sweep_id, world_.Draw(100));
  if (job_id == 0) return;
  coordinator_.Cancel(store::CancelJob{job_id, absl::ToUnixMillis(world_.Wall())},
                      [](const auto&) {});
}

void People::TryCancel(std::int64_t sweep_id) {
  const auto over = std::make_shared<bool>(false);
  const auto again = [=, this] {
    if (!std::exchange(*over, true)) TryCancel(sweep_id);
  };
  world_.After(kTimeout, again);
  coordinator_.Cancel(store::CancelSweep{sweep_id, absl::ToUnixMillis(world_.Wall())},
                      [=, this](absl::StatusOr<store::WriteResult> result) {
                        if (!result.ok()) return world_.After(absl::Seconds(1), again);
                        if (!std::exchange(*over, true)) open_ -= 1;
                      });
}

void People::Analyse() {
  if (sweeps_.empty()) return;
  std::vector<store::Analysis> analyses = SomeAnalyses(Parsed(Documents()[world_.Draw(2)]));
  coordinator_.Analyse(world_.OneOf(sweeps_), std::move(analyses), [](const auto&) {});
}

}  // namespace pelab::sim
