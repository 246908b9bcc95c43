// The results that a sheet's claims are judged on, for each seed. Values; copyable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/claims/binding.h"
#include "core/results/job_list.h"
#include "pelab/v1/results.pb.h"

namespace pelab::claims {

// One seed of one configuration.
struct Outcome {
  enum class State {
    // No outcome yet: the job is not stored, is not trained yet, was cancelled, or failed for
    // another reason than its loss.
    kOpen,
    kFailed,  // the job failed because its loss became NaN or infinite
    kDone,
  };
  State state = State::kOpen;
  std::map<std::string, double> values;  // by ValueName; an undefined value is absent
  // The names of the analyses that are stored, among those that claims are about. A training that
  // is done can still lack its analyses.
  std::set<std::string, std::less<>> analyses;
  // True if the analyses that this job lacks can never be stored, because its weights are gone. The
  // metrics that need them are then undefined for this seed, as they are for a failed job.
  bool analyses_over = false;
  double slot_seconds = 0;  // see SlotTimes

  // Whether the training is done, and the analysis that the metric needs is still to come.
  bool Lacks(const std::string& metric) const;
};

class Outcomes {
 public:
  void Set(std::size_t configuration, std::int64_t seed, Outcome outcome) {
    outcomes_[{configuration, seed}] = std::move(outcome);
  }
  // Open for a seed that was never set.
  const Outcome& Of(std::size_t configuration, std::int64_t seed) const;

 private:
  std::map<std::pair<std::size_t, std::int64_t>, Outcome> outcomes_;
};

// The name of the value that a claim is about: its metric, and for a property of layers also these:
// "test_accuracy", "deposit(shallow)", "deposit(0,2)".
std::string ValueName(const Claim& claim);

// The value that a failed seed has, the worst that the metric can take; nullopt if it has none, as
// for indices of a head ablation.
std::optional<double> WorstValue(const std::string& metric);

// Rows of the database, for the jobs of the sheet's sweep or for more jobs.
struct StoredRows {
  results::JobList jobs;
  // Head ablations. Their intact accuracies tell whether a model is better than chance.
  std::vector<v1::HeadAblationRow> heads;
  std::vector<v1::DepositRow> deposits;
  std::map<double, std::vector<v1::EpochsToRow>> epochs_to;  // by accuracy
  std::vector<v1::AttemptRow> attempts;                      // of failed jobs, or of all
  // Analyses other than head ablations, by name; of those that the sheet's metrics need.
  std::map<std::string_view, std::vector<v1::AnalysisRow>> analyses;
  std::set<std::int64_t> without_weights;  // trained jobs that cannot be analyzed any more
};

class SlotTimes {
 public:
  explicit SlotTimes(const StoredRows& rows);
  // Returns the slot time of a job. For a trained job, it is the time of its training. For a job
  // that failed because its loss was not finite, it is the time of all its attempts. nullopt for
  // any other job.
  std::optional<double> Of(const v1::JobRow& row) const;

 private:
  struct Attempts {
    double seconds = 0;
    bool diverged = false;  // the last one
  };
  std::unordered_map<std::int64_t, Attempts> attempts_;  // by job
};

// Returns the outcomes of the sheet's configurations. If `rows` has several generations of a job,
// the latest counts. If a job has several head ablations, the one that its protocol asks for
// counts. For `published`, that is the ablation of the authors' code. For other protocols, it is
// the ablation of each head by zeros, with restore policy `clean`, on the test set. If the job
// lacks this ablation, the most similar one that is stored counts. The same holds for the other
// analyses.
Outcomes OutcomesOf(const BoundSheet& sheet, const StoredRows& rows);

// The accuracies x of the metrics epochs_to(x) that the sheet names.
std::vector<double> EpochsToOf(const Sheet& sheet);

// The analyses that the sheet's metrics need.
std::set<std::string_view> AnalysesOf(const Sheet& sheet);

}  // namespace pelab::claims
