// Values about jobs and attempts that several writes of the store share (writes.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/state/state.h"

namespace pelab::store {

// An analysis as an assignment names it; parameters are RFC 8785 JSON.
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

// The file that a job's training leaves for analyses.
inline constexpr char kWeightsName[] = "weights.safetensors";
struct KeptWeights {
  std::string sha256;
  std::uint64_t bytes = 0;
};

// A training's state that a later attempt may go on from; one a job, the newest.
struct Checkpoint {
  int epoch = 0;  // the next to run
  std::string sha256;
  std::uint64_t bytes = 0;
};

// The requirements that a job has of the slot that runs it.
struct Requirement {
  std::string pe;
  int pe_version = 0;
  std::string task;
  int task_version = 0;
  std::string device_kind;  // any | gpu | cpu
  std::uint64_t memory_bytes = 0;
  std::vector<std::pair<std::string, int>> analyses;     // names and versions, each once, sorted
  auto operator<=>(const Requirement&) const = default;  // NOLINT(modernize-use-nullptr): its 0
};

// A live sweep's wish for a job.
struct Claim {
  std::int64_t sweep_id = 0;
  std::int64_t ordinal = 0;  // of the job in that sweep
  bool operator==(const Claim&) const = default;
};

// A queued job as the scheduler keeps it.
struct ReadyJob {
  std::int64_t job_id = 0;
  std::int64_t sweep_id = 0;    // the oldest live sweep that claims it; 0: none does
  std::int64_t ordinal = 0;     // in that sweep
  std::vector<Claim> others;    // further live sweeps that claim it
  std::int64_t not_before = 0;  // 0: at once
  Requirement requirement;
  // Jobs of one configuration differ in their seed alone, and one trainer may take them together
  // where they have computed alike so far; 0: it goes by itself.
  std::int64_t configuration_id = 0;
  std::string execution;  // of its first attempt, as JSON; empty: it had none yet
};

// How a live sweep stands to the others.
struct SweepStanding {
  std::int64_t sweep_id = 0;
  int priority = 0;
  bool paused = false;
  bool operator==(const SweepStanding&) const = default;
};

// An assignment, as it is sent to a worker.
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
  std::vector<Analysis> analyses;  // those that are not stored yet
  int max_start_epoch = 0;
  std::optional<Execution> execution;  // of the job's first attempt, where there was one
  std::optional<KeptWeights> weights;  // set: only the analyses are to run, on these
  std::optional<Checkpoint> checkpoint;
};

// An attempt that has not ended, as the scheduler keeps it.
struct OpenAttempt {
  std::string worker_id;
  ReadyJob job;
  Assignment assignment;
  bool started = false;    // something of it is stored
  bool cancelled = false;  // nobody claims its job any more
};

}  // namespace pelab::store
