// The command line of pelab-worker.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "core/base/logging.h"
#include "core/rpc/address.h"
#include "core/rpc/credentials.h"
#include "worker/agent/attempt.h"
#include "worker/agent/devices.h"
#include "worker/agent/retirement.h"

namespace pelab::agent {

struct AgentOptions {
  rpc::Address server;
  rpc::ClientSecurity security;
  std::string work_dir = "./pelab-worker";
  SlotOptions slots;
  bool mps = true;                 // start MPS if trainers share a GPU and this host has it
  std::optional<int> micro_batch;  // of each trainer; 0: the whole batch; nullopt: it chooses
  std::string trainer;             // "": pelab-trainer beside this program, then in PATH
  std::uint64_t spool_quota_bytes = std::uint64_t{1} << 30;
  CheckpointCadence checkpoint_every;
  absl::Duration checkpoint_upload = absl::Minutes(5);  // zero: never
  bool preload = true;  // fork trainers from one process that has loaded LibTorch
  std::optional<absl::Duration> attempt_timeout;  // as in AttemptContext
  std::string name;                               // the name for people; "": the host's name
  RetirementLimits retirement;                    // a time_limit of `slurm` is not in it yet
  bool slurm_time_limit = false;                  // the limit is that of the Slurm job
  bool own_encodings = true;                      // run encodings that come from files
  std::string artifact_store;                     // a directory; "": none
  std::optional<rpc::Address> metrics;            // where /metrics is served; nullopt: nowhere
  std::string trace_file;                         // of spans, as OTLP lines; "": none
  int parent_fd = -1;
  LogOptions logging;
};

// The parsed command line. main goes on with `options`, or ends with `exit_code` after help or an
// error was printed.
struct CommandLine {
  bool go_on = false;
  int exit_code = 0;
  AgentOptions options;
};

// Prints help, the version and errors itself. After an error exit_code is 2.
CommandLine ParseCommandLine(int argc, char** argv);

}  // namespace pelab::agent
