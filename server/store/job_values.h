// Values about jobs and attempts that several writes of the store use (writes.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "core/base/trace_context.h"
#include "core/state/state.h"

namespace pelab::store {

// An analysis as an assignment names it. The parameters are canonical JSON (RFC 8785).
struct Analysis {
  std::string name;
  int version = 0;
  std::string parameters_json;
  bool operator==(const Analysis&) const = default;
};

// The settings of a machine that change the last bits of a result.
struct Execution {
  int threads = 0;
  int micro_batch = 0;  // 0: the whole batch
  int packing = 0;
  bool operator==(const Execution&) const = default;
};

// The file that a job's training leaves for later analyses.
inline constexpr char kWeightsName[] = "weights.safetensors";
struct KeptWeights {
  std::string sha256;
  std::uint64_t bytes = 0;
};

// A file that a job's spec names by its hash.
struct NeededFile {
  std::string sha256;
  std::uint64_t bytes = 0;  // 0: the file is not recorded, so nobody has it
};

// A training state from which a later attempt can resume. A job has one, the newest.
struct Checkpoint {
  int epoch = 0;  // the next epoch to run
  std::string sha256;
  std::uint64_t bytes = 0;
};

// A job's requirements for the slot that runs it.
struct Requirement {
  std::string pe;
  int pe_version = 0;
  std::string task;  // its label (experiment::TaskLabel)
  int task_version = 0;
  std::string device_kind;  // any | gpu | cpu
  std::uint64_t memory_bytes = 0;
  std::vector<std::pair<std::string, int>> analyses;     // names and versions, each once, sorted
  auto operator<=>(const Requirement&) const = default;  // NOLINT(modernize-use-nullptr): its 0
};

// A live sweep's claim on a job.
struct Claim {
  std::int64_t sweep_id = 0;
  std::int64_t ordinal = 0;  // the job's position in that sweep
  bool operator==(const Claim&) const = default;
};

// A queued job in the form that the scheduler keeps.
struct ReadyJob {
  std::int64_t job_id = 0;
  std::int64_t sweep_id = 0;    // the oldest live sweep that claims the job; 0: none does
  std::int64_t ordinal = 0;     // the job's position in that sweep
  std::vector<Claim> others;    // claims of further live sweeps
  std::int64_t not_before = 0;  // Unix milliseconds; 0: the job may start at once
  Requirement requirement;
  // Jobs of one configuration differ in their seed alone. One trainer may run them together if
  // `execution` is equal too. 0: the job must run alone.
  std::int64_t configuration_id = 0;
  // Settings of the job's first attempt, as JSON; empty: none has started yet.
  std::string execution;
  // When the job entered the scheduler's queue, on the monotonic clock. The store leaves it alone.
  absl::Duration waits_since;
};

// The settings of a live sweep that decide its place among the others.
struct SweepSettings {
  std::int64_t sweep_id = 0;
  int priority = 0;
  bool paused = false;
  std::string owner;  // the principal that submitted it; empty: there were none
  bool operator==(const SweepSettings&) const = default;
};

// An assignment as it is sent to a worker.
struct Assignment {
  std::int64_t attempt_id = 0;
  std::uint64_t token = 0;
  std::int64_t job_id = 0;
  std::string key;
  int slot = 0;
  std::string pe;
  std::string pe_label;
  std::string task;
  std::int64_t seed = 0;
  std::string spec_json;
  std::vector<Analysis> analyses;  // the analyses that are not stored yet
  int max_start_epoch = 0;
  std::optional<Execution> execution;  // settings of the job's first attempt, if there was one
  std::optional<KeptWeights> weights;  // set: only the analyses are to run, on these weights
  std::optional<Checkpoint> checkpoint;
  std::vector<NeededFile> files;
  TraceContext trace;           // the attempt's span; empty: it belongs to no trace
  std::string parent_span;      // the span of the sweep for which it runs
  std::int64_t sweep_id = 0;    // that sweep, for logs; the scheduler sets it
  std::string principal;        // whose budget pays for it; empty: nobody's
  std::int64_t started_at = 0;  // Unix milliseconds
};

// An attempt that has not ended, in the form that the scheduler keeps.
struct OpenAttempt {
  std::string worker_id;
  std::string worker_name;  // as v_workers shows it
  ReadyJob job;
  Assignment assignment;
  std::string principal;        // whose budget pays for it; empty: nobody's
  std::int64_t started_at = 0;  // Unix milliseconds
  bool started = false;         // some of its events are stored
  bool cancelled = false;       // no live sweep waits for its job any more
};

}  // namespace pelab::store
