// Sweeps in the database: their rows, and what makes one live or end. Internal to the store;
// everything here may throw SQLite::Exception.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/store/batch.h"

namespace pelab::store {

struct SweepRow {
  std::string state;
  std::uint64_t cells = 0;
  std::uint64_t expanded = 0;
  int priority = 0;
  bool paused = false;
  bool fresh = false;
  std::vector<Analysis> analyses;
  bool reopened = false;                  // it is active only for analyses of its jobs
  std::optional<std::int64_t> drop_from;  // cancelled, with jobs left to drop
  bool expands_again = false;             // its cells are looked at once more, from the first on
  bool deleted = false;                   // with jobs left to delete
  std::string protocol;                   // what its jobs say: "clean,custom"

  bool live() const { return state == "expanding" || state == "active"; }
};
// Also one that is deleted.
std::optional<SweepRow> LoadSweep(Database& db, std::int64_t sweep_id);
SweepStanding StandingOf(std::int64_t sweep_id, const SweepRow& sweep);
// Where it lives.
void AddStanding(Database& db, std::int64_t sweep_id, SliceStored& slice);

// A finished sweep waits again for those of its jobs that are open; `for_analyses`: its results are
// not in question. Nothing where it has not finished. `slice` gets its jobs that wait already.
void Reopen(Batch& batch, std::int64_t sweep_id, bool for_analyses, SliceStored& slice);
// The sweep lives again: its jobs that were queued meanwhile, for others, stand in its line too.
void AddWaiting(Batch& batch, std::int64_t sweep_id, SliceStored& slice);
// Counts the open jobs of a sweep that is live from now on.
void CountOpenJobs(Batch& batch, std::int64_t sweep_id);
// The sweep ends in this batch by other means than its last job.
void StopCounting(Batch& batch, std::int64_t sweep_id);

// Applied once: where the sweep is no longer expanding at write.from, nothing happens.
SliceStored Expand(Batch& batch, std::int64_t sweep_id, const ExpandSlice& write);

// How a sweep counts a job on which it has no claim any more: whether it waits or runs for others is
// none of its own.
state::JobState WithoutClaim(state::JobState state, bool trained);
// Withdraws the sweep's claims on its jobs at the ordinals [from, to), or takes them back, and counts
// accordingly; of open jobs a live sweep's open claims are left to the caller. Returns how many.
int SetClaimed(Batch& batch, std::int64_t sweep_id, std::int64_t from, std::int64_t to,
               bool claimed);

// Whether a live sweep claims the job.
bool IsClaimed(Database& db, std::int64_t job_id);

// A place in a sweep and the job that stands there.
struct SweepJob {
  std::int64_t ordinal = 0;
  std::int64_t job_id = 0;
  state::JobState state = state::JobState::kQueued;
};
// At most `limit` of a sweep's jobs, by ordinal, from `from` on.
std::vector<SweepJob> JobsOfSweep(Database& db, std::int64_t sweep_id, std::int64_t from,
                                  int limit);

// The configuration with this template (core/experiment/configuration.h), new where there is none.
std::int64_t ConfigurationWith(Database& db, const std::string& spec_template);

// Of a slice: what the writer looks at, and what it changes, in a few milliseconds.
inline constexpr int kScannedJobs = 2000;
inline constexpr int kChangedJobs = 200;

}  // namespace pelab::store
