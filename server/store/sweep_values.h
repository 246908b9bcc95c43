// Writes about sweeps and their results: submitting, expanding, naming, deleting, cancelling,
// steering, retrying, extending, analyses (writes.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/state/state.h"
#include "server/store/job_values.h"

namespace pelab::store {

struct NewCell {
  std::uint64_t ordinal = 0;
  std::string key;
  std::string pe_label;
  std::string protocol_label;
  std::int64_t seed = 0;
  std::string spec_json;
  Requirement requirement;
  int epochs = 0;
};
// The jobs of the ordinals [from, next) of a sweep, excluded ones left out. Applied once: where the
// sweep is no longer expanding at `from`, nothing happens.
struct ExpandSlice {
  std::int64_t sweep_id = 0;
  std::uint64_t from = 0;
  std::uint64_t next = 0;
  bool last = false;
  std::vector<NewCell> cells;
  std::int64_t now = 0;
};
struct SliceStored {
  bool applied = false;                    // false: stop expanding, but for
  std::optional<std::uint64_t> resume_at;  // where a sweep that expands stands instead
  std::vector<SweepStanding> standings;    // of the live sweeps that wait for `ready`
  std::vector<ReadyJob> ready;
  // Attempts of jobs that were cancelled and are queued again.
  std::vector<std::int64_t> superseded;
};

// Stores the document in state `expanding`. With `go_on`, continues a stored sweep of this name and
// document instead. A sweep that had ended is then expanded again: what was cancelled of it is
// queued, what is stored stays as it is.
struct SubmitSweep {
  std::string name;
  std::string protocol;
  std::string document;
  std::string file_name;
  std::string overrides_json;
  std::string client_token;
  std::string analyses_json;   // [{"name":…,"version":…,"parameters":{…}}]
  std::string resources_json;  // {"device":…,"memory_bytes":…}
  std::string request_sha256;  // of all that was asked: a token that is used again must repeat it
  int priority = 0;            // of a sweep that goes on: kept where this is 0
  bool fresh = false;
  bool go_on = false;
  std::uint64_t cells = 0;
  // The first of them, for the sweep that is made: a small one is whole with its first write.
  std::optional<ExpandSlice> first;
  std::int64_t now = 0;
};
struct SweepStored {
  enum Refusal {
    kNone,
    kNameTaken,  // with `go_on`: `sweep_id` has the name and another document
    kTokenUsed,  // for another request, which `sweep_id` answers
  };
  std::int64_t sweep_id = 0;
  Refusal refusal = kNone;      // nothing is stored
  bool repeated_token = false;  // the sweep of the first submission
  bool went_on = false;         // with a sweep that was there
  bool reopened = false;        // it had been cancelled, or jobs of it had
  bool expands_again = false;   // from its first cell on
  SliceStored first;            // applied where a sweep was made and `first` was there
};

// Gives a sweep another name, or another note (empty: none).
struct LabelSweep {
  std::int64_t sweep_id = 0;
  std::optional<std::string> name;
  std::optional<std::string> note;
};
struct SweepLabelled {
  bool found = false;
  bool changed = false;
  std::int64_t has_name = 0;  // another sweep that has the name: nothing is changed; 0: none
};

// Deletes a sweep that has ended: nobody sees it from then on. Its jobs that no other sweep has go
// with all of their results, in the DeleteSlices that follow.
struct DeleteSweep {
  std::int64_t sweep_id = 0;
  std::int64_t now = 0;
};
struct DeleteSlice {
  std::int64_t sweep_id = 0;
  std::int64_t now = 0;
};

// From then on no job starts for the sweep, and what runs for it alone is stopped. Its queued jobs
// are dropped by the DropSlices that follow.
struct CancelSweep {
  std::int64_t sweep_id = 0;
  std::int64_t now = 0;
};
// Withdraws some more claims of a cancelled sweep and cancels the jobs that no other sweep claims.
// Continues where the last slice stopped.
struct DropSlice {
  std::int64_t sweep_id = 0;
  std::int64_t now = 0;
};
struct CancelJob {  // withdraws every sweep's claim
  std::int64_t job_id = 0;
  std::int64_t now = 0;
};
struct Cancelled {
  bool found = false;
  std::int64_t sweep_id = 0;  // which has no claims any more; 0: only a job was cancelled
  bool more = false;          // a DropSlice has something left to do
  std::int64_t claims_withdrawn = 0;
  std::vector<std::int64_t> jobs;      // that were open and are cancelled now
  std::vector<std::int64_t> attempts;  // that are still open and have to be stopped
};

struct SweepDeleted {
  bool found = false;
  bool live = false;   // nothing is changed
  bool more = false;   // a DeleteSlice has something left to do
  bool waits = false;  // for workers that have yet to stop a job of it
  std::int64_t jobs_deleted = 0;
  std::int64_t jobs_kept = 0;  // that another sweep has
  Cancelled cancelled;         // jobs that were queued or ran for nobody's sweep
};
// Counts what deleting a sweep would delete and keep, from ordinal `from` on, a part at a time.
struct CountDeletion {
  std::int64_t sweep_id = 0;
  std::int64_t from = 0;
};
struct DeletionCounted {
  std::int64_t jobs_deleted = 0;
  std::int64_t jobs_kept = 0;
  std::optional<std::int64_t> next;  // where the next part begins
};

// Changes a live sweep's pause and priority. Of a sweep that has ended only the priority changes.
struct SteerSweep {
  std::int64_t sweep_id = 0;
  std::optional<bool> paused;
  std::optional<int> priority;
};
struct SweepSteered {
  bool found = false;
  bool changed = false;
  bool live = false;
  SweepStanding standing;
};

// Queues the failed jobs among some of a sweep's, from ordinal `from` on. Idempotent.
struct RetrySlice {
  std::int64_t sweep_id = 0;
  std::int64_t from = 0;
  std::int64_t now = 0;
};
// Queues one job that failed or, unless `failed_only`, was cancelled.
struct RetryJob {
  std::int64_t job_id = 0;
  bool failed_only = false;
  std::int64_t now = 0;
};
struct Retried {
  std::string refused;  // why not, for people; nothing else is set then
  std::int64_t queued = 0;
  std::int64_t nothing = 0;          // jobs that need nothing
  std::optional<std::int64_t> next;  // of a sweep: where the next slice begins
  SliceStored jobs;                  // what the scheduler has to know
};

// Adds seeds: `cells` is the sweep's size with them. Applied where the sweep has exactly `known`
// extensions, which its caller has seen; expansion goes on as after a submission.
struct ExtendSweep {
  std::int64_t sweep_id = 0;
  std::size_t known = 0;
  std::string seeds;  // "5..9,12"
  std::uint64_t cells = 0;
};
struct SweepExtended {
  bool applied = false;        // false: it was extended meanwhile, or cancelled
  std::uint64_t expanded = 0;  // cells that are expanded already: where the expander goes on
  SliceStored jobs;            // where it lives again: those that wait already
};

// Adds analyses to jobs: those that are trained are queued again, the others get them after their
// training. Idempotent; the caller cuts long lists into several writes.
struct Analyse {
  std::vector<std::int64_t> jobs;
  std::int64_t sweep_id = 0;  // which the jobs were taken from; 0: they were named singly
  std::vector<Analysis> analyses;
  std::int64_t now = 0;
};
struct Analysed {
  std::int64_t queued = 0;
  std::int64_t stored = 0;
  std::int64_t not_possible = 0;
  std::int64_t after_training = 0;
  std::int64_t not_trained = 0;
  std::vector<std::string> reasons;  // of the jobs that are not possible or not trained
  SliceStored jobs;                  // what the scheduler has to know
};

}  // namespace pelab::store
