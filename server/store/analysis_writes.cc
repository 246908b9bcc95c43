// Analyses that were requested for jobs directly, in addition to those of the sweeps that claim
// them.
#include <cstdint>
#include <set>

#include "absl/strings/str_cat.h"
#include "server/store/analyses.h"
#include "server/store/batch.h"
#include "server/store/sweeps.h"

namespace pelab::store {
namespace {

using state::JobState;

// The sweep to reopen for a job that was named by itself, so that some sweep shows its progress: a
// live sweep that claims it if there is one, otherwise the latest that claims it. 0: none.
std::int64_t SweepToReopen(Database& db, std::int64_t job_id) {
  Query latest = db.Run(
      "SELECT s.sweep_id, s.state FROM sweep_jobs AS c JOIN sweeps AS s USING (sweep_id) "
      "WHERE c.job_id = ? AND c.claimed = 1 "
      "ORDER BY s.state IN ('expanding', 'active') DESC, s.sweep_id DESC LIMIT 1",
      job_id);
  return latest.Step() ? latest.Int(0) : 0;
}

class Analyser {
 public:
  Analyser(Batch& batch, const Analyze& write) : batch_(batch), write_(write) {}

  void Add(std::int64_t job_id) {
    Query row = batch_.db.Run(
        "SELECT state, trained, pe_label, task, seed FROM jobs WHERE job_id = ?", job_id);
    if (!row.Step()) return;
    const JobState state = *state::ParseJobState(row.Text(0));
    const bool trained = row.Int(1) != 0;
    const std::string label = absl::StrCat("job ", job_id, " (", row.Text(2), " ", row.Text(3),
                                           " seed ", row.Int(4), ")");
    if (state == JobState::kFailed || state == JobState::kCancelled) {
      result_.not_trained += 1;
      return Say(absl::StrCat(label, " ", std::string(state::Name(state)), ": it has no weights"));
    }
    const std::vector<Analysis> missing = MissingAnalyses(batch_.db, job_id, write_.analyses);
    if (missing.empty()) {
      result_.stored += 1;
      return;
    }
    if (trained && !FindWeights(batch_, job_id)) {
      result_.not_possible += 1;
      return Say(absl::StrCat(label, ": its weights are not kept"));
    }
    for (const Analysis& analysis : missing) Request(job_id, analysis);
    (trained ? result_.queued : result_.after_training) += 1;
    if (trained) Queue(job_id, state);
  }

  Analyzed Finish() {
    for (const std::int64_t sweep_id : sweeps_) AddSettings(batch_.db, sweep_id, result_.jobs);
    result_.jobs.applied = true;
    return std::move(result_);
  }

 private:
  void Say(std::string reason) { result_.reasons.push_back(std::move(reason)); }

  void Request(std::int64_t job_id, const Analysis& analysis) {
    batch_.db.Execute(
        "INSERT OR IGNORE INTO analysis_requests (job_id, name, version, parameters_json) "
        "VALUES (?, ?, ?, ?)",
        job_id, analysis.name, analysis.version, analysis.parameters_json);
  }

  void Queue(std::int64_t job_id, JobState state) {
    const std::int64_t sweep_id =
        write_.sweep_id != 0 ? write_.sweep_id : SweepToReopen(batch_.db, job_id);
    if (sweep_id != 0) {
      Reopen(batch_, sweep_id, /*for_analyses=*/true, result_.jobs);
      sweeps_.insert(sweep_id);
    }
    if (state == JobState::kSucceeded &&
        !QueueForAnalyses(batch_, job_id, write_.now, result_.jobs.superseded)) {
      return;
    }
    // A waiting job is reported again, because it may now need a worker with more capabilities. A
    // running job gets the further analyses in its next attempt.
    if (state == JobState::kSucceeded || state == JobState::kQueued) {
      result_.jobs.ready.push_back(LoadReady(batch_.db, job_id));
    }
  }

  Batch& batch_;
  const Analyze& write_;
  Analyzed result_;
  std::set<std::int64_t> sweeps_;  // sweeps that wait for the queued jobs
};

}  // namespace

WriteResult Do(Batch& batch, const Analyze& write) {
  Analyser analyzer(batch, write);
  for (const std::int64_t job_id : write.jobs) analyzer.Add(job_id);
  return analyzer.Finish();
}

}  // namespace pelab::store
