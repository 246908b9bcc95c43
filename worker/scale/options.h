// The command line of pelab-scale.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "core/base/logging.h"
#include "core/rpc/address.h"
#include "core/rpc/credentials.h"

namespace pelab::scale {

enum class Command {
  kRun,     // until it is stopped
  kList,    // the allocations there are
  kDryRun,  // what would be submitted now, and whether the batch system would take it
};

struct ScaleOptions {
  Command command = Command::kRun;
  std::string queues_file;  // empty: the queues are the coordinator's
  rpc::Address server;
  rpc::ClientSecurity security;
  std::string tag;  // in the comments of allocations; "": the coordinator's address
  absl::Duration interval = absl::Seconds(5);
  absl::Duration look = absl::Seconds(30);
  std::string trace_file;  // of spans, as OTLP lines; "": none
  LogOptions logging;
};

// The parsed command line. main goes on with `options`, or ends with `exit_code` after help or an
// error was printed.
struct CommandLine {
  bool go_on = false;
  int exit_code = 0;
  ScaleOptions options;
};

// Prints help, the version and errors itself. After an error exit_code is 2.
CommandLine ParseCommandLine(int argc, char** argv);

}  // namespace pelab::scale
