// Sweeps: submission, and expansion in slices.
#include <algorithm>
#include <cstdint>

#include "core/spec/chance.h"
#include "core/spec/configuration.h"
#include "server/store/analyses.h"
#include "server/store/batch.h"
#include "server/store/sweeps.h"

namespace pelab::store {
namespace {

using state::JobState;

// What a cell finds in the database.
struct Existing {
  std::int64_t job_id = 0;
  int generation = 0;
  JobState state = JobState::kQueued;
};

// The generation that a submission joins: the latest that was trained, else the latest.
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

// Two cells of one sweep may be the same job; the second is no job of its own.
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

  void Add(const NewCell& cell) {
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
  SliceStored& result() { return result_; }

 private:
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

  // Seeds vary fastest: most cells have the configuration of the one before.
  std::int64_t ConfigurationOf(const NewCell& cell) {
    std::string its = spec::TemplateOf(cell.spec_json, cell.seed);
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

  // A job that waits goes with whichever of its sweeps is served first, and where all of them are.
  void Share(const Existing& existing) {
    if (existing.state == JobState::kQueued) {
      result_.ready.push_back(LoadReady(batch_.db, existing.job_id));
    }
  }

  // A trained job that lacks some of the sweep's analyses is queued again to get them.
  void JoinTrained(const NewCell& cell, const Existing& existing) {
    counts_.stored += 1;
    const std::int64_t job_id = existing.job_id;
    const bool lacks = !MissingAnalyses(batch_.db, job_id, sweep_.analyses).empty();
    const bool possible = lacks && FindWeights(batch_, job_id);
    if (lacks && !possible) counts_.analysis_impossible += 1;
    if (!possible || !QueueForAnalyses(batch_, job_id, now_, result_.superseded)) {
      return Claim(cell, job_id, false);
    }
    counts_.analysis += 1;
    Claim(cell, job_id, true);
    result_.ready.push_back(LoadReady(batch_.db, job_id));
  }

  void Revive(const NewCell& cell, const Existing& existing) {
    if (const auto open = OpenAttemptOf(batch_.db, existing.job_id)) {
      result_.superseded.push_back(*open);
    }
    Move(batch_, existing.job_id, {.event = state::Event::kRetry, .error = "", .now = now_});
    Claim(cell, existing.job_id, /*open=*/true);
    counts_.fresh += 1;
    result_.ready.push_back(LoadReady(batch_.db, existing.job_id));
  }

  Batch& batch_;
  const std::int64_t sweep_id_;
  const std::int64_t now_;
  const SweepRow& sweep_;
  const std::vector<std::pair<std::string, int>> versions_;
  std::string template_;               // of the last new job
  std::int64_t configuration_id_ = 0;  // which has that template; 0: there was none yet
  Counts counts_;
  SliceStored result_;
};

SliceStored Expand(Batch& batch, std::int64_t sweep_id, const ExpandSlice& write) {
  const std::optional<SweepRow> sweep = LoadSweep(batch.db, sweep_id);
  if (!sweep || sweep->state != "expanding") return {};
  if (sweep->expanded != write.from) return {.resume_at = sweep->expanded};
  Slice slice(batch, sweep_id, write.now, *sweep);
  for (const NewCell& cell : write.cells) slice.Add(cell);
  const Counts& counts = slice.counts();
  // It may have been extended since the slice was made.
  const bool whole = write.last && write.next >= sweep->cells;
  batch.db.Execute(
      "UPDATE sweeps SET expanded_cells = ?, new_jobs = new_jobs + ?, "
      "stored_jobs = stored_jobs + ?, in_flight_jobs = in_flight_jobs + ?, "
      "failed_earlier_jobs = failed_earlier_jobs + ?, analysis_jobs = analysis_jobs + ?, "
      "analysis_impossible_jobs = analysis_impossible_jobs + ?, state = ? WHERE sweep_id = ?",
      write.next, counts.fresh, counts.stored, counts.in_flight, counts.failed, counts.analysis,
      counts.analysis_impossible, whole ? "active" : "expanding", sweep_id);
  // Touched, so that a sweep without an open job is finished at once.
  batch.open_delta[sweep_id] += 0;
  slice.result().applied = true;
  slice.result().standings = {StandingOf(sweep_id, *sweep)};
  return std::move(slice.result());
}

}  // namespace

std::int64_t ConfigurationWith(Database& db, const std::string& spec_template) {
  {
    Query row =
        db.Run("SELECT configuration_id FROM configurations WHERE template = ?", spec_template);
    if (row.Step()) return row.Int(0);
  }
  db.Execute("INSERT INTO configurations (template, divergence_loss) VALUES (?, ?)", spec_template,
             spec::DivergenceLossOf(spec_template));
  return db.LastId();
}

WriteResult Do(Batch& batch, const SubmitSweep& write) {
  {
    Query same =
        batch.db.Run("SELECT sweep_id FROM sweeps WHERE client_token = ?", write.client_token);
    if (same.Step()) return SweepStored{.sweep_id = same.Int(0), .repeated_token = true};
  }
  batch.db.Execute(
      "INSERT INTO sweeps (name, protocol, document, file_name, overrides_json, client_token, "
      "analyses_json, resources_json, priority, fresh, state, cells, created_at) "
      "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'expanding', ?, ?)",
      write.name, write.protocol, write.document, write.file_name, write.overrides_json,
      write.client_token, write.analyses_json, write.resources_json, write.priority, write.fresh,
      write.cells, write.now);
  SweepStored stored{.sweep_id = batch.db.LastId()};
  if (write.first) stored.first = Expand(batch, stored.sweep_id, *write.first);
  return stored;
}

WriteResult Do(Batch& batch, const ExpandSlice& write) {
  return Expand(batch, write.sweep_id, write);
}

}  // namespace pelab::store
