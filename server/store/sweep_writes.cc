// Expanding sweeps into jobs, in slices.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <set>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/experiment/chance.h"
#include "core/experiment/configuration.h"
#include "server/store/analyses.h"
#include "server/store/batch.h"
#include "server/store/sweeps.h"

namespace pelab::store {
namespace {

using state::JobState;

// The stored job that a cell refers to.
struct Existing {
  std::int64_t job_id = 0;
  int generation = 0;
  JobState state = JobState::kQueued;
};

// The generation that a submission joins: the latest trained one, otherwise the latest.
std::optional<Existing> Find(Database& db, const std::string& key) {
  Query row = db.Run(
      "SELECT job_id, generation, state FROM jobs WHERE key = ? "
      "ORDER BY trained DESC, generation DESC LIMIT 1",
      key);
  if (!row.Step()) return std::nullopt;
  return Existing{row.Int(0), static_cast<int>(row.Int(1)), *state::ParseJobState(row.Text(2))};
}

int LatestGeneration(Database& db, const std::string& key) {
  Query row = db.Run("SELECT coalesce(max(generation), 0) FROM jobs WHERE key = ?", key);
  row.Step();
  return static_cast<int>(row.Int(0));
}

bool Claims(Database& db, std::int64_t sweep_id, std::int64_t job_id) {
  return db.Run("SELECT 1 FROM sweep_jobs WHERE job_id = ? AND sweep_id = ?", job_id, sweep_id)
      .Step();
}

// Two cells of one sweep may describe the same job. The second one then adds no job.
bool ClaimsKey(Database& db, std::int64_t sweep_id, const std::string& key) {
  return db
      .Run(
          "SELECT 1 FROM jobs AS j JOIN sweep_jobs AS c ON c.job_id = j.job_id "
          "AND c.sweep_id = ? WHERE j.key = ?",
          sweep_id, key)
      .Step();
}

struct Counts {
  int fresh = 0;
  int stored = 0;
  int in_flight = 0;
  int failed = 0;
  int analysis = 0;
  int analysis_impossible = 0;
};

class Slice {
 public:
  Slice(Batch& batch, std::int64_t sweep_id, std::int64_t now, const SweepRow& sweep)
      : batch_(batch),
        sweep_id_(sweep_id),
        now_(now),
        sweep_(sweep),
        versions_(VersionsOf(sweep.analyses)) {}

  // Processes again the jobs at the ordinals [from, to) that the sweep has from an earlier
  // expansion: restores withdrawn claims, queues cancelled jobs and adds missing analyses.
  void TakeBack(std::int64_t from, std::int64_t to) {
    struct Row {
      std::int64_t ordinal = 0;
      bool claimed = false;
      Existing job;
    };
    std::vector<Row> rows;
    {
      Query query = batch_.db.Run(
          "SELECT c.ordinal, c.claimed, j.job_id, j.generation, j.state FROM sweep_jobs AS c "
          "JOIN jobs AS j USING (job_id) WHERE c.sweep_id = ? AND c.ordinal >= ? "
          "AND c.ordinal < ? ORDER BY c.ordinal",
          sweep_id_, from, to);
      while (query.Step()) {
        rows.push_back({query.Int(0), query.Int(1) != 0,
                        Existing{query.Int(2), static_cast<int>(query.Int(3)),
                                 *state::ParseJobState(query.Text(4))}});
      }
    }
    for (const Row& row : rows) {
      taken_back_.insert(row.ordinal);
      if (!row.claimed) SetClaimed(batch_, sweep_id_, row.ordinal, row.ordinal + 1, true);
      TakeBack(row.job, row.claimed);
    }
  }

  void Add(const NewCell& cell) {
    protocols_.insert(cell.protocol_label);
    if (taken_back_.count(static_cast<std::int64_t>(cell.ordinal)) != 0) return;
    if (sweep_.fresh) {
      if (!ClaimsKey(batch_.db, sweep_id_, cell.key)) {
        Create(cell, LatestGeneration(batch_.db, cell.key) + 1);
      }
      return;
    }
    const std::optional<Existing> existing = Find(batch_.db, cell.key);
    if (!existing) return Create(cell, 1);
    if (Claims(batch_.db, sweep_id_, existing->job_id)) return;
    Join(cell, *existing);
  }

  const Counts& counts() const { return counts_; }
  const std::set<std::string>& protocols() const { return protocols_; }
  SliceStored& result() { return result_; }

 private:
  // A restored claim on a job that waits or runs for other sweeps is open from now on.
  void TakeBack(const Existing& job, bool was_claimed) {
    switch (job.state) {
      case JobState::kSucceeded:
        counts_.stored += 1;
        if (AddAnalyses(job.job_id)) result_.ready.push_back(LoadReady(batch_.db, job.job_id));
        return;
      case JobState::kFailed:
        counts_.failed += 1;
        return;
      case JobState::kCancelled:
        return Wake(job);
      default:
        counts_.in_flight += 1;
        if (!was_claimed) batch_.open_delta[sweep_id_] += 1;
        return Share(job);
    }
  }

  void Claim(const NewCell& cell, std::int64_t job_id, bool open) {
    batch_.db.Execute("INSERT INTO sweep_jobs (sweep_id, ordinal, job_id) VALUES (?, ?, ?)",
                      sweep_id_, cell.ordinal, job_id);
    if (open) batch_.open_delta[sweep_id_] += 1;
    Query job =
        batch_.db.Run("SELECT state, epochs, epochs_done FROM jobs WHERE job_id = ?", job_id);
    if (!job.Step()) return;
    CountDelta& delta = batch_.counts[sweep_id_];
    delta.jobs[static_cast<std::size_t>(*state::ParseJobState(job.Text(0)))] += 1;
    delta.epochs += job.Int(1);
    delta.epochs_done += job.Int(2);
  }

  void Create(const NewCell& cell, int generation) {
    batch_.db.Execute(
        "INSERT INTO jobs (key, generation, pe, pe_version, pe_label, task, task_version, "
        "protocol, seed, configuration_id, device_kind, memory_bytes, state, epochs, created_at) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'queued', ?, ?)",
        cell.key, generation, cell.requirement.pe, cell.requirement.pe_version, cell.pe_label,
        cell.requirement.task, cell.requirement.task_version, cell.protocol_label, cell.seed,
        ConfigurationOf(cell), cell.requirement.device_kind, cell.requirement.memory_bytes,
        cell.epochs, now_);
    const std::int64_t job_id = batch_.db.LastId();
    Claim(cell, job_id, /*open=*/true);
    counts_.fresh += 1;
    result_.ready.push_back({.job_id = job_id,
                             .sweep_id = sweep_id_,
                             .ordinal = static_cast<std::int64_t>(cell.ordinal),
                             .requirement = cell.requirement,
                             .configuration_id = configuration_id_});
    result_.ready.back().requirement.analyses = versions_;
  }

  // Seeds vary fastest, so most cells have the configuration of the previous one.
  std::int64_t ConfigurationOf(const NewCell& cell) {
    std::string its = experiment::TemplateOf(cell.spec_json, cell.seed);
    if (configuration_id_ == 0 || its != template_) {
      configuration_id_ = ConfigurationWith(batch_.db, its);
      template_ = std::move(its);
    }
    return configuration_id_;
  }

  void Join(const NewCell& cell, const Existing& existing) {
    switch (existing.state) {
      case JobState::kSucceeded:
        return JoinTrained(cell, existing);
      case JobState::kFailed:
        counts_.failed += 1;
        Demand(existing.job_id);
        return Claim(cell, existing.job_id, false);
      case JobState::kQueued:
      case JobState::kAssigned:
      case JobState::kRunning:
        counts_.in_flight += 1;
        Claim(cell, existing.job_id, true);
        return Share(existing);
      case JobState::kCancelled:
        return Revive(cell, existing);
    }
  }

  // A waiting job runs for whichever of its sweeps is served first, and its analyses are those of
  // all of them.
  void Share(const Existing& existing) {
    if (existing.state == JobState::kQueued) {
      result_.ready.push_back(LoadReady(batch_.db, existing.job_id));
    }
  }

  // A trained job that lacks some of the sweep's analyses is queued again for them.
  void JoinTrained(const NewCell& cell, const Existing& existing) {
    counts_.stored += 1;
    const bool open = AddAnalyses(existing.job_id);
    Claim(cell, existing.job_id, open);
    if (open) result_.ready.push_back(LoadReady(batch_.db, existing.job_id));
  }
  // Returns whether the job was queued for them.
  bool AddAnalyses(std::int64_t job_id) {
    if (MissingAnalyses(batch_.db, job_id, sweep_.analyses).empty()) return false;
    if (!FindWeights(batch_, job_id)) {
      counts_.analysis_impossible += 1;
      return false;
    }
    if (!QueueForAnalyses(batch_, job_id, now_, result_.superseded)) return false;
    Demand(job_id);
    counts_.analysis += 1;
    return true;
  }

  void Revive(const NewCell& cell, const Existing& existing) {
    Requeue(existing);
    Claim(cell, existing.job_id, /*open=*/true);
    result_.ready.push_back(LoadReady(batch_.db, existing.job_id));
  }
  void Wake(const Existing& existing) {
    Requeue(existing);  // also counts for this sweep's claim
    result_.ready.push_back(LoadReady(batch_.db, existing.job_id));
  }
  void Requeue(const Existing& existing) {
    if (const auto open = OpenAttemptOf(batch_.db, existing.job_id)) {
      result_.superseded.push_back(*open);
    }
    Move(batch_, existing.job_id, {.event = state::Event::kRetry, .error = "", .now = now_});
    Demand(existing.job_id);
    counts_.fresh += 1;
  }
  // Nobody else waits for the job, so what this sweep demands of a slot counts from now on.
  void Demand(std::int64_t job_id) { DemandAs(batch_.db, job_id, sweep_id_); }

  Batch& batch_;
  const std::int64_t sweep_id_;
  const std::int64_t now_;
  const SweepRow& sweep_;
  const std::vector<std::pair<std::string, int>> versions_;
  std::string template_;  // of the last new job
  // The configuration of template_; 0: there was no new job yet.
  std::int64_t configuration_id_ = 0;
  std::set<std::int64_t> taken_back_;  // ordinals
  std::set<std::string> protocols_;
  Counts counts_;
  SliceStored result_;
};

bool HasJobs(Database& db, std::int64_t sweep_id) {
  return db.Run("SELECT 1 FROM sweep_jobs WHERE sweep_id = ? LIMIT 1", sweep_id).Step();
}

// The protocol labels of the sweep's jobs, including those of a slice. If the sweep had no jobs,
// only the slice's labels count, because the stored value is then that of its document.
std::string ProtocolsOf(const SweepRow& sweep, bool has_jobs, std::set<std::string> protocols) {
  if (protocols.empty()) return sweep.protocol;
  if (has_jobs) {
    for (const auto part : absl::StrSplit(sweep.protocol, ',', absl::SkipEmpty())) {
      protocols.emplace(part);
    }
  }
  return absl::StrJoin(protocols, ",");
}

}  // namespace

SliceStored Expand(Batch& batch, std::int64_t sweep_id, const ExpandSlice& write) {
  const std::optional<SweepRow> sweep = LoadSweep(batch.db, sweep_id);
  if (!sweep || sweep->state != "expanding") return {};
  if (sweep->expanded != write.from) return {.resume_at = sweep->expanded};
  const bool has_jobs = HasJobs(batch.db, sweep_id);
  Slice slice(batch, sweep_id, write.now, *sweep);
  // The sweep may have been extended since the slice was made.
  const bool whole = write.last && write.next >= sweep->cells;
  if (sweep->expands_again) {
    slice.TakeBack(
        static_cast<std::int64_t>(write.from),
        whole ? std::numeric_limits<std::int64_t>::max() : static_cast<std::int64_t>(write.next));
  }
  for (const NewCell& cell : write.cells) slice.Add(cell);
  const Counts& counts = slice.counts();
  batch.db.Execute(
      "UPDATE sweeps SET expanded_cells = ?, new_jobs = new_jobs + ?, "
      "stored_jobs = stored_jobs + ?, in_flight_jobs = in_flight_jobs + ?, "
      "failed_earlier_jobs = failed_earlier_jobs + ?, analysis_jobs = analysis_jobs + ?, "
      "analysis_impossible_jobs = analysis_impossible_jobs + ?, state = ?, expands_again = ?, "
      "protocol = ? WHERE sweep_id = ?",
      write.next, counts.fresh, counts.stored, counts.in_flight, counts.failed, counts.analysis,
      counts.analysis_impossible, whole ? "active" : "expanding", sweep->expands_again && !whole,
      ProtocolsOf(*sweep, has_jobs, slice.protocols()), sweep_id);
  // The entry is needed even for 0, so that a sweep without open jobs is finished at once.
  batch.open_delta[sweep_id] += 0;
  slice.result().applied = true;
  slice.result().sweep_settings = {SettingsOf(sweep_id, *sweep)};
  return std::move(slice.result());
}

std::int64_t ConfigurationWith(Database& db, const std::string& spec_template) {
  {
    Query row =
        db.Run("SELECT configuration_id FROM configurations WHERE template = ?", spec_template);
    if (row.Step()) return row.Int(0);
  }
  db.Execute("INSERT INTO configurations (template, divergence_loss) VALUES (?, ?)", spec_template,
             experiment::DivergenceLossOf(spec_template));
  return db.LastId();
}

WriteResult Do(Batch& batch, const ExpandSlice& write) {
  return Expand(batch, write.sweep_id, write);
}

}  // namespace pelab::store
