#include "core/claims/outcomes.h"

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>
#include <unordered_map>

#include "core/base/strings.h"
#include "core/claims/metric.h"
#include "core/experiment/configuration.h"
#include "core/results/ablation_scores.h"
#include "core/results/metrics.h"
#include "core/results/split_scores.h"
#include "core/results/top.h"
#include "core/state/state.h"
#include "core/stats/deposit.h"

namespace pelab::claims {
namespace {

using results::Metric;

constexpr char kHeadAblation[] = "head_ablation";

// A stored head ablation of a job, and its indices.
struct Ablation {
  std::int64_t analysis = 0;
  bool has_chance = false;
  bool defined = false;  // the intact accuracy stands out from chance
  std::int64_t total = 0;
  std::string method, hygiene, split, target;
  std::optional<v1::DepositRow> whole;  // over all layers
  std::set<std::int64_t> layers;        // that have a deposit
};
using Ablations = std::unordered_map<std::int64_t, std::vector<Ablation>>;  // by job

Ablations AblationsOf(const StoredRows& rows) {
  std::map<std::int64_t, Ablation> by_analysis;
  std::map<std::int64_t, std::int64_t> jobs;
  for (const v1::HeadAblationRow& row : rows.heads) {
    Ablation& ablation = by_analysis[row.analysis_id()];
    if (ablation.analysis != 0) continue;
    jobs[row.analysis_id()] = row.job_id();
    ablation = {.analysis = row.analysis_id(),
                .has_chance = row.has_chance(),
                .defined = row.has_chance() &&
                           stats::StandsOut(row.intact_correct(), row.total(), row.chance()),
                .total = row.total(),
                .method = row.method(),
                .hygiene = row.hygiene(),
                .split = row.split(),
                .target = row.target()};
  }
  for (const v1::DepositRow& row : rows.deposits) {
    const auto found = by_analysis.find(row.analysis_id());
    if (found == by_analysis.end()) continue;
    if (!row.has_layer()) {
      found->second.whole = row;
    } else if (row.deposit()) {
      found->second.layers.insert(row.layer());
    }
  }
  Ablations all;
  for (auto& [analysis, ablation] : by_analysis) {
    all[jobs.at(analysis)].push_back(std::move(ablation));
  }
  return all;
}

// How well an ablation is the one that the cell's protocol asks for. All are true: it is.
std::tuple<bool, bool, bool, bool> Fit(const Ablation& a, const experiment::Cell& cell) {
  const bool published = cell.protocol_label == "published";
  return {a.method == "zero", a.hygiene == (published ? "authors" : "clean"),
          a.split == (published ? "all" : "test"),
          a.target == (published && cell.job.pe == "mla" ? "authors" : "head")};
}

// The same for another analysis. One without a method or a choice of data fits in this respect.
std::tuple<bool, bool> Fit(const v1::AnalysisRow& analysis, const experiment::Cell& cell) {
  const results::AblationKind kind = results::KindOf(analysis);
  const char* data = cell.protocol_label == "published" ? "all" : "test";
  return {kind.method.empty() || kind.method == "zero", kind.data.empty() || kind.data == data};
}

template <typename... Bools>
bool IsBest(const std::tuple<Bools...>& fit) {
  return std::apply([](Bools... fits) { return (fits && ...); }, fit);
}

// The one that fits best. Of equals, the one of the most examples, then the newest.
const v1::AnalysisRow* Choose(const std::vector<const v1::AnalysisRow*>& analyses,
                              const experiment::Cell& cell) {
  const auto rank = [&](const v1::AnalysisRow* a) {
    return std::tuple_cat(Fit(*a, cell), std::tuple(a->total(), a->analysis_id()));
  };
  return *std::max_element(
      analyses.begin(), analyses.end(),
      [&](const v1::AnalysisRow* a, const v1::AnalysisRow* b) { return rank(a) < rank(b); });
}

std::optional<double> AnalysisValue(const v1::AnalysisRow& analysis, const Metric& metric) {
  if (metric.split.empty()) return results::AblationScoreOf(analysis, metric);
  for (const results::SplitScore& score : results::SplitScoresOf(analysis)) {
    if (score.name == metric.split) return score.accuracy();
  }
  return std::nullopt;
}

// The one that fits best. Of equals, the one of the most examples.
const Ablation* Choose(const std::vector<Ablation>& ablations, const experiment::Cell& cell) {
  const auto rank = [&](const Ablation& a) {
    return std::tuple_cat(Fit(a, cell), std::tuple(a.has_chance, a.total, a.analysis));
  };
  const auto best =
      std::max_element(ablations.begin(), ablations.end(),
                       [&](const Ablation& a, const Ablation& b) { return rank(a) < rank(b); });
  return best == ablations.end() ? nullptr : &*best;
}

// Whether a trained job is still being analyzed, so that a better analysis may be on its way.
bool IsAnalyzed(const v1::JobRow& row) {
  return row.state() == v1::JOB_STATE_QUEUED || row.state() == v1::JOB_STATE_ASSIGNED ||
         row.state() == v1::JOB_STATE_RUNNING;
}

bool HasDeposit(const Ablation& ablation, const Layers& layers, std::int64_t depth) {
  const auto has = [&](std::int64_t layer) { return ablation.layers.count(layer) > 0; };
  switch (layers.which) {
    case Layers::Which::kAny:
      return !ablation.layers.empty();
    case Layers::Which::kShallow:
      return std::any_of(ablation.layers.begin(), ablation.layers.end(),
                         [&](std::int64_t layer) { return 2 * layer < depth; });
    case Layers::Which::kListed:
      return std::all_of(layers.listed.begin(), layers.listed.end(), has);
  }
  return false;
}

std::optional<double> Index(const v1::DepositRow& row, const Metric& metric) {
  const auto values = results::DepositValues({row}, metric);
  const auto found =
      values.ok() ? values->find(row.job_id()) : results::MetricValues::const_iterator();
  if (!values.ok() || found == values->end()) return std::nullopt;
  return found->second;
}

// A model that could lose something and loses nothing has no deposit, and a largest drop of 0.
std::optional<double> IndexValue(const std::string& name, const Ablation* ablation) {
  if (ablation == nullptr || !ablation->defined || !ablation->whole) return std::nullopt;
  const auto metric = results::ParseMetric(name);
  if (!metric.ok()) return std::nullopt;
  const auto index = Index(*ablation->whole, *metric);
  return index || name != "max_drop" ? index : 0;
}

std::optional<double> AblationValue(const Claim& claim, const Ablation* ablation,
                                    std::int64_t depth) {
  if (ablation == nullptr || !ablation->defined || !ablation->whole) return std::nullopt;
  const v1::DepositRow& row = *ablation->whole;
  if (claim.metric == kDeposit || claim.metric == kNoDeposit) {
    return HasDeposit(*ablation, claim.layers, depth) == (claim.metric == kDeposit) ? 1 : 0;
  }
  if (claim.metric == kStartsDeeper) {
    if (!row.has_top_layer()) return std::nullopt;
    return row.top_layer() > 0 ? 1 : 0;
  }
  return IndexValue(claim.metric, ablation);
}

// The metrics of jobs and curves that the sheet's claims and their eligibility name.
std::vector<Metric> PlainMetrics(const Sheet& sheet) {
  std::map<std::string, Metric> metrics;
  const auto add = [&](const std::string& name) {
    const auto metric = results::ParseMetric(name);
    if (metric.ok() && metric->source != Metric::Source::kDeposit) metrics[name] = *metric;
  };
  for (const Claim& claim : sheet.claims) {
    for (const std::string& metric : MetricsOf(claim)) add(metric);
  }
  std::vector<Metric> all;
  all.reserve(metrics.size());
  for (const auto& [name, metric] : metrics) all.push_back(metric);
  return all;
}

class Builder {
 public:
  Builder(const BoundSheet& sheet, const StoredRows& rows)
      : sheet_(sheet),
        metrics_(PlainMetrics(sheet.sheet)),
        ablations_(AblationsOf(rows)),
        times_(rows),
        without_weights_(rows.without_weights) {
    for (std::size_t i = 0; i < sheet.configurations.size(); ++i) {
      const experiment::Cell& cell = sheet.configurations[i];
      positions_[experiment::TemplateOf(cell.canonical_json, cell.job.seed)] = i;
    }
    for (const auto& [accuracy, epochs] : rows.epochs_to) {
      epochs_to_[accuracy] = results::EpochsValues(epochs);
    }
    for (const auto& [name, analyses] : rows.analyses) {
      for (const v1::AnalysisRow& row : analyses) analyses_[name][row.job_id()].push_back(&row);
    }
  }

  // The configuration of a row; nullopt if the sheet's sweep has none like it.
  std::optional<std::size_t> PositionOf(const results::JobList& jobs, const v1::JobRow& row) const {
    const auto spec = jobs.templates().find(row.configuration_id());
    const auto found =
        spec == jobs.templates().end() ? positions_.end() : positions_.find(spec->second);
    if (found == positions_.end()) return std::nullopt;
    return found->second;
  }

  Outcome OutcomeOf(std::size_t configuration, const v1::JobRow& row) const {
    const std::optional<double> seconds = times_.Of(row);
    Outcome outcome{.slot_seconds = seconds.value_or(0)};
    const bool done = row.trained() || row.state() == v1::JOB_STATE_SUCCEEDED;
    if (!done) {
      if (seconds) outcome.state = Outcome::State::kFailed;
      return outcome;
    }
    outcome.state = Outcome::State::kDone;
    outcome.analyses_over = without_weights_.count(row.job_id()) > 0;
    const experiment::Cell& cell = sheet_.configurations[configuration];
    for (const Metric& metric : metrics_) {
      if (const auto value = PlainValue(row, metric, cell)) outcome.values[metric.name] = *value;
    }
    const auto stored = ablations_.find(row.job_id());
    const Ablation* ablation = stored == ablations_.end() ? nullptr : Choose(stored->second, cell);
    if (ablation != nullptr && (IsBest(Fit(*ablation, cell)) || !IsAnalyzed(row))) {
      outcome.analyses.insert(kHeadAblation);
    }
    for (const auto& [name, of_jobs] : analyses_) {
      const v1::AnalysisRow* analysis = ChosenOf(name, row, cell);
      if (analysis != nullptr && (IsBest(Fit(*analysis, cell)) || !IsAnalyzed(row))) {
        outcome.analyses.emplace(name);
      }
    }
    AddAblationValues(cell, ablation, outcome);
    return outcome;
  }

 private:
  void AddAblationValues(const experiment::Cell& cell, const Ablation* ablation,
                         Outcome& outcome) const {
    for (const Claim& claim : sheet_.sheet.claims) {
      if (AnalysisOf(claim.metric) == kHeadAblation) {
        const auto value = AblationValue(claim, ablation, cell.job.Int("model.layers"));
        if (value) outcome.values[ValueName(claim)] = *value;
      }
      if (claim.eligible && AnalysisOf(claim.eligible->metric) == kHeadAblation) {
        const auto value = IndexValue(claim.eligible->metric, ablation);
        if (value) outcome.values[claim.eligible->metric] = *value;
      }
    }
  }

  // The one of the job's analyses of this name that counts; nullptr: it has none.
  const v1::AnalysisRow* ChosenOf(std::string_view name, const v1::JobRow& row,
                                  const experiment::Cell& cell) const {
    const auto by_job = analyses_.find(name);
    if (by_job == analyses_.end()) return nullptr;
    const auto found = by_job->second.find(row.job_id());
    return found == by_job->second.end() ? nullptr : Choose(found->second, cell);
  }

  std::optional<double> PlainValue(const v1::JobRow& row, const Metric& metric,
                                   const experiment::Cell& cell) const {
    if (metric.source == Metric::Source::kJob) return results::MetricOf(row, metric);
    if (metric.source == Metric::Source::kAnalysis) {
      const v1::AnalysisRow* analysis = ChosenOf(metric.analysis, row, cell);
      return analysis == nullptr ? std::nullopt : AnalysisValue(*analysis, metric);
    }
    const auto of_accuracy = epochs_to_.find(metric.accuracy);
    if (of_accuracy == epochs_to_.end()) return std::nullopt;
    const auto found = of_accuracy->second.find(row.job_id());
    if (found != of_accuracy->second.end()) return found->second;
    return std::numeric_limits<double>::infinity();  // it never got there
  }

  const BoundSheet& sheet_;
  std::vector<Metric> metrics_;
  Ablations ablations_;
  SlotTimes times_;
  std::unordered_map<std::string, std::size_t> positions_;  // by template
  std::map<double, results::MetricValues> epochs_to_;
  // Analyses by name and job.
  using OfJobs = std::unordered_map<std::int64_t, std::vector<const v1::AnalysisRow*>>;
  std::map<std::string_view, OfJobs> analyses_;
  const std::set<std::int64_t>& without_weights_;
};

}  // namespace

SlotTimes::SlotTimes(const StoredRows& rows) {
  for (const v1::AttemptRow& attempt : rows.attempts) {
    Attempts& of_job = attempts_[attempt.job_id()];
    of_job.diverged = attempt.error_kind() == state::Name(state::ErrorKind::kNonFiniteLoss);
    const std::int64_t ms =
        attempt.has_ended_at_ms() ? attempt.ended_at_ms() - attempt.started_at_ms() : 0;
    of_job.seconds += static_cast<double>(std::max<std::int64_t>(0, ms)) / 1000;
  }
}

std::optional<double> SlotTimes::Of(const v1::JobRow& row) const {
  if (row.trained()) return row.wall_seconds();
  const auto found = attempts_.find(row.job_id());
  const bool diverged =
      row.state() == v1::JOB_STATE_FAILED && found != attempts_.end() && found->second.diverged;
  return diverged ? std::optional(found->second.seconds) : std::nullopt;
}

const Outcome& Outcomes::Of(std::size_t configuration, std::int64_t seed) const {
  static const Outcome open;
  const auto found = outcomes_.find({configuration, seed});
  return found == outcomes_.end() ? open : found->second;
}

std::string ValueName(const Claim& claim) {
  if (claim.metric != kDeposit && claim.metric != kNoDeposit) return claim.metric;
  switch (claim.layers.which) {
    case Layers::Which::kAny:
      return claim.metric;
    case Layers::Which::kShallow:
      return Concat(claim.metric, "(shallow)");
    case Layers::Which::kListed:
      return Concat(claim.metric, "(", Join(claim.layers.listed, ","), ")");
  }
  return claim.metric;
}

std::optional<double> WorstValue(const std::string& name) {
  if (IsAboutAblation(name) || IsAboutAblation(name.substr(0, name.find('(')))) {
    return std::nullopt;
  }
  const auto metric = results::ParseMetric(name);
  if (!metric.ok()) return std::nullopt;
  if (name == "generalisation_gap") return 1;
  return results::IsBetterWhenLow(*metric) ? std::numeric_limits<double>::infinity() : 0;
}

Outcomes OutcomesOf(const BoundSheet& sheet, const StoredRows& rows) {
  const Builder builder(sheet, rows);
  Outcomes outcomes;
  std::map<std::pair<std::size_t, std::int64_t>, std::int32_t> generations;
  for (const v1::JobRow& row : rows.jobs) {
    const auto configuration = builder.PositionOf(rows.jobs, row);
    if (!configuration) continue;
    const auto [known, is_new] =
        generations.try_emplace({*configuration, row.seed()}, row.generation());
    if (!is_new && row.generation() < known->second) continue;
    known->second = row.generation();
    outcomes.Set(*configuration, row.seed(), builder.OutcomeOf(*configuration, row));
  }
  return outcomes;
}

bool Outcome::Lacks(const std::string& metric) const {
  const std::string_view analysis = AnalysisOf(metric);
  return state == State::kDone && !analysis.empty() && analyses.count(analysis) == 0 &&
         !analyses_over;
}

std::set<std::string_view> AnalysesOf(const Sheet& sheet) {
  std::set<std::string_view> analyses;
  for (const Claim& claim : sheet.claims) {
    for (const std::string& metric : MetricsOf(claim)) analyses.insert(AnalysisOf(metric));
  }
  analyses.erase("");
  return analyses;
}

std::vector<double> EpochsToOf(const Sheet& sheet) {
  std::set<double> accuracies;
  for (const Metric& metric : PlainMetrics(sheet)) {
    if (metric.source == Metric::Source::kEpochs) accuracies.insert(metric.accuracy);
  }
  return {accuracies.begin(), accuracies.end()};
}

}  // namespace pelab::claims
