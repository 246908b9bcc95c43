// Writes that concern sweeps and their results: submit, expand, rename, delete, cancel, control,
// retry, extend, analyze (writes.h).
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
// The jobs of the ordinals [from, next) of a sweep, without excluded ones. A slice is applied once:
// if the sweep is no longer expanding at `from`, nothing happens.
struct ExpandSlice {
  std::int64_t sweep_id = 0;
  std::uint64_t from = 0;
  std::uint64_t next = 0;
  bool last = false;
  std::vector<NewCell> cells;
  std::int64_t now = 0;
};
struct SliceStored {
  bool applied = false;                    // false: stop expanding, unless resume_at is set
  std::optional<std::uint64_t> resume_at;  // where an expanding sweep continues instead
  std::vector<SweepSettings>
      sweep_settings;  // settings of the live sweeps that claim jobs in `ready`
  std::vector<ReadyJob> ready;
  // Open attempts of jobs that were cancelled or trained and are queued again.
  std::vector<std::int64_t> superseded;
};

// Stores the document, in state `expanding`. With `go_on`, it continues a stored sweep with this
// name and document instead. If that sweep has ended or has cancelled jobs, it is expanded
// again: cancelled jobs are queued, and stored results stay as they are.
struct SubmitSweep {
  std::string name;
  std::string protocol;
  std::string document;
  std::string file_name;
  std::string overrides_json;
  std::string client_token;
  std::string analyses_json;   // [{"name":…,"version":…,"parameters_json":"…"}]
  std::string resources_json;  // {"device":…,"memory_bytes":…}
  // Hash of the whole request: a token that is used again must come with the same request.
  std::string request_sha256;
  std::string owner;            // the principal that submits it; empty: there are none
  bool any_owner = true;        // with `go_on`: may continue a sweep of somebody else
  std::int64_t max_queued = 0;  // jobs of the owner's sweeps that may wait, with these; 0: no limit
  int priority = 0;             // a sweep that is continued keeps its priority if this is 0
  bool fresh = false;
  bool go_on = false;
  TraceContext trace;  // the span of the call; a sweep that is continued keeps its own
  std::uint64_t cells = 0;
  // The first cells, for a new sweep: a small sweep is complete with its first write.
  std::optional<ExpandSlice> first;
  std::int64_t now = 0;
};
struct SweepStored {
  enum Refusal {
    kNone,
    kNameTaken,  // with `go_on`: `sweep_id` has this name and another document
    kTokenUsed,  // the token was used for another request, which made or continued `sweep_id`
    kForeign,    // with `go_on`: `sweep_id` is somebody else's
    kFull,       // more than max_queued jobs would wait; `queued` wait already
  };
  std::int64_t sweep_id = 0;
  Refusal refusal = kNone;  // not kNone: nothing is stored
  std::int64_t queued = 0;
  // The token was used before: this is the answer to the first submission.
  bool repeated_token = false;
  bool went_on = false;        // an existing sweep was continued
  bool reopened = false;       // the sweep, or some of its jobs, had been cancelled
  bool expands_again = false;  // the sweep is expanded again, from its first cell on
  // For a new sweep with `first`: the result of that slice. For a continued sweep: its jobs that
  // wait already.
  SliceStored first;
};

// Expands a sweep again that has ended or has cancelled jobs, as SubmitSweep with `go_on` does.
// Answered by SweepStored, with sweep_id 0 if there is no such sweep.
struct ReopenSweep {
  std::int64_t sweep_id = 0;
};

// Changes a sweep's name or note (empty: no note).
struct LabelSweep {
  std::int64_t sweep_id = 0;
  std::optional<std::string> name;
  std::optional<std::string> note;
};
struct SweepLabeled {
  bool found = false;
  bool changed = false;
  // Another sweep that has the name, so that nothing is changed; 0: none.
  std::int64_t has_name = 0;
};

// Deletes a sweep that has ended: from then on nobody sees it. The DeleteSlices that follow delete
// its jobs that no other sweep has, with all of their results.
struct DeleteSweep {
  std::int64_t sweep_id = 0;
  std::int64_t now = 0;
};
struct DeleteSlice {
  std::int64_t sweep_id = 0;
  std::int64_t now = 0;
};

// Cancels a sweep. From then on no job starts for the sweep, and jobs that run for it alone are
// stopped. The DropSlices that follow withdraw the remaining claims and cancel the queued jobs. A
// sweep that is active only for analyses of its trained jobs becomes finished again and keeps its
// claims.
struct CancelSweep {
  std::int64_t sweep_id = 0;
  std::int64_t now = 0;
};
// Continues with a cancelled sweep where the last slice stopped: withdraws some more claims, and
// cancels the jobs that no other sweep claims.
struct DropSlice {
  std::int64_t sweep_id = 0;
  std::int64_t now = 0;
};
// Withdraws every sweep's claim on the job. For a trained job, cancels only the analyses.
struct CancelJob {
  std::int64_t job_id = 0;
  std::int64_t now = 0;
};
struct Cancelled {
  bool found = false;
  std::int64_t sweep_id = 0;  // the sweep that has no claims any more; 0: only a job was cancelled
  bool more = false;          // a DropSlice is needed
  std::int64_t claims_withdrawn = 0;
  std::vector<std::int64_t> jobs;      // jobs that were open and are cancelled now
  std::vector<std::int64_t> attempts;  // attempts that are still open and must be stopped
  std::vector<ReadyJob> ready;         // jobs that wait and demand something else of a slot now
};

struct SweepDeleted {
  bool found = false;
  bool live = false;  // the sweep is live, so nothing is changed
  bool more = false;  // a DeleteSlice is needed
  // Nothing can be deleted until workers have stopped its jobs or its claims are withdrawn.
  bool waits = false;
  std::int64_t jobs_deleted = 0;
  std::int64_t jobs_kept = 0;  // jobs that another sweep has too
  // Jobs that were queued or running although no live sweep claimed them.
  Cancelled cancelled;
};
// Counts what deleting a sweep would delete and keep. Counts a part of the jobs, from ordinal
// `from` on.
struct CountDeletion {
  std::int64_t sweep_id = 0;
  std::int64_t from = 0;
};
struct DeletionCounted {
  std::int64_t jobs_deleted = 0;
  std::int64_t jobs_kept = 0;
  std::optional<std::int64_t> next;  // where the next part begins; nullopt: this was the last
};

// Changes a live sweep's pause and priority. If the sweep has ended, only the priority changes.
struct ControlSweep {
  std::int64_t sweep_id = 0;
  std::optional<bool> paused;
  std::optional<int> priority;
};
struct SweepControlled {
  bool found = false;
  bool changed = false;
  bool live = false;
  SweepSettings settings;
};

// Queues the failed jobs of a part of a sweep, from ordinal `from` on. Idempotent.
struct RetrySlice {
  std::int64_t sweep_id = 0;
  std::int64_t from = 0;
  std::int64_t now = 0;
};
// Queues one job that has failed. Also queues a cancelled one, unless `failed_only`.
struct RetryJob {
  std::int64_t job_id = 0;
  bool failed_only = false;
  std::int64_t now = 0;
};
struct Retried {
  std::string refused;  // the reason for a refusal, for people; nothing else is set then
  std::int64_t queued = 0;
  std::int64_t nothing = 0;          // jobs that did not have to be queued
  std::optional<std::int64_t> next;  // for a sweep: where the next slice begins
  SliceStored jobs;                  // for the scheduler
};

// Adds seeds to a sweep. `cells` is the sweep's size including them. Nothing happens unless the
// sweep has exactly `known` extensions, the ones that the caller has seen. The expansion then
// continues as after a submission.
struct ExtendSweep {
  std::int64_t sweep_id = 0;
  std::size_t known = 0;
  std::string seeds;  // "5..9,12"
  std::uint64_t cells = 0;
  std::int64_t max_queued = 0;  // as in SubmitSweep
};
struct SweepExtended {
  bool applied = false;  // false: the sweep was extended meanwhile, or is cancelled
  bool full = false;     // more than max_queued jobs would wait; `queued` wait already
  std::int64_t queued = 0;
  std::uint64_t expanded = 0;  // cells that are expanded already: the expander continues from here
  SliceStored jobs;            // if the sweep is reopened: its jobs that wait already
};

// Adds analyses to jobs. Trained jobs are queued again; the others get the analyses after their
// training. Idempotent. The caller splits long lists into several writes.
struct Analyze {
  std::vector<std::int64_t> jobs;
  // The sweep that the jobs were taken from; 0: they were named one by one.
  std::int64_t sweep_id = 0;
  std::vector<Analysis> analyses;
  std::int64_t now = 0;
};
struct Analyzed {
  std::int64_t queued = 0;
  std::int64_t stored = 0;
  std::int64_t not_possible = 0;
  std::int64_t after_training = 0;
  std::int64_t not_trained = 0;
  std::vector<std::string> reasons;  // one for each job that is not possible or not trained
  SliceStored jobs;                  // for the scheduler
};

}  // namespace pelab::store
