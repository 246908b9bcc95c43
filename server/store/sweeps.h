// Sweeps in the database: their rows, and the rules by which they are live or end. Internal to the
// store. Every function here may throw SQLite::Exception.
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
  bool reopened = false;  // the sweep is active only for analyses of its jobs
  // The sweep is cancelled and its claims from this ordinal on are still to be withdrawn.
  std::optional<std::int64_t> drop_from;
  bool expands_again = false;  // its cells are processed once more, from the first on
  bool deleted = false;        // the sweep is deleted, with jobs left to delete
  std::string protocol;        // the protocol labels of its jobs: "clean,custom"
  std::string owner;           // the principal that submitted it; empty: there were none

  bool live() const { return state == "expanding" || state == "active"; }
};
// Also loads a deleted sweep.
std::optional<SweepRow> LoadSweep(Database& db, std::int64_t sweep_id);
SweepSettings SettingsOf(std::int64_t sweep_id, const SweepRow& sweep);
// Adds the sweep's settings to `slice` if it is live.
void AddSettings(Database& db, std::int64_t sweep_id, SliceStored& slice);

// Makes a finished sweep active again, so that it waits for its open jobs. Adds its jobs that wait
// already to `slice`. With `for_analyses` the sweep is active for analyses only. Without
// `for_analyses`, a sweep that is active for analyses only becomes active as usual. Any other sweep
// is left as it is.
void Reopen(Batch& batch, std::int64_t sweep_id, bool for_analyses, SliceStored& slice);
// For a sweep that is reopened: adds to `slice` those of its claimed jobs that wait. Until now,
// these jobs waited for other sweeps only.
void AddWaiting(Batch& batch, std::int64_t sweep_id, SliceStored& slice);
// Counts the open jobs of a sweep that is live from now on.
void CountOpenJobs(Batch& batch, std::int64_t sweep_id);
// Call this if the sweep ends in this batch for another reason than the end of its last job.
void StopCounting(Batch& batch, std::int64_t sweep_id);

// Applied once: if the sweep is no longer expanding at `write.from`, nothing happens.
SliceStored Expand(Batch& batch, std::int64_t sweep_id, const ExpandSlice& write);

// The state in which a sweep counts a job after withdrawing its claim. An open job counts as
// succeeded if it is trained, otherwise as cancelled.
state::JobState WithoutClaim(state::JobState state, bool trained);
// Withdraws the sweep's claims on its jobs at the ordinals [from, to), or restores them, and
// updates the sweep's counts. The caller must update the number of open claims of a live sweep.
// Returns how many claims were changed.
int SetClaimed(Batch& batch, std::int64_t sweep_id, std::int64_t from, std::int64_t to,
               bool claimed);

// Whether a live sweep claims the job.
bool IsClaimed(Database& db, std::int64_t job_id);
// The oldest live sweep that claims the job; 0: none.
std::int64_t ClaimantOf(Database& db, std::int64_t job_id);

// From now on the job demands of a slot what the sweep's document does (`resources`). Returns
// whether that changed anything.
bool DemandAs(Database& db, std::int64_t job_id, std::int64_t sweep_id);

// A job and its position in a sweep.
struct SweepJob {
  std::int64_t ordinal = 0;
  std::int64_t job_id = 0;
  state::JobState state = state::JobState::kQueued;
};
// At most `limit` jobs of a sweep, ordered by ordinal, from `from` on.
std::vector<SweepJob> JobsOfSweep(Database& db, std::int64_t sweep_id, std::int64_t from,
                                  int limit);

// The configuration with this template (core/experiment/configuration.h). Creates it if there is
// none.
std::int64_t ConfigurationWith(Database& db, const std::string& spec_template);

// A slice looks at most at so many jobs and changes at most so many, which takes 20 to 30 ms.
inline constexpr int kScannedJobs = 2000;
inline constexpr int kChangedJobs = 200;

}  // namespace pelab::store
