// pelab-scale: starts workers on a cluster when jobs wait.
#include <iostream>
#include <string>

#include "core/base/logging.h"
#include "core/base/shutdown.h"
#include "core/base/standard_descriptors.h"
#include "core/base/utf8.h"
#include "worker/scale/options.h"
#include "worker/scale/run.h"

namespace {

int Complain(const absl::Status& status, int exit_code) {
  std::cerr << "pelab-scale: " << pelab::Escape(std::string(status.message()), /*keep_lines=*/true)
            << "\n";
  return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  pelab::OpenClosedStandardDescriptors();
  const pelab::scale::CommandLine line = pelab::scale::ParseCommandLine(argc, argv);
  if (!line.go_on) return line.exit_code;
  if (const absl::Status status = pelab::SetUpLogging("pelab-scale", line.options.logging);
      !status.ok()) {
    return Complain(status, 2);
  }
  pelab::ShutdownSignal shutdown;
  const absl::Status status = pelab::scale::Run(line.options, shutdown);
  if (!status.ok()) return Complain(status, absl::IsInvalidArgument(status) ? 2 : 1);
  return pelab::FlushStandardOutput("pelab-scale", 0);
}
