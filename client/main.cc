// pelab: the command line.
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "client/app.h"
#include "client/terminal/standard_output.h"
#include "core/base/logging.h"
#include "core/base/standard_descriptors.h"

int main(int argc, char** argv) {
  pelab::OpenClosedStandardDescriptors();
  std::signal(SIGPIPE, SIG_IGN);  // so that `pelab results | head` ends quietly
  std::signal(SIGXFSZ, SIG_IGN);  // so that a file that exceeds `ulimit -f` is an error with a name
  if (absl::Status status = pelab::SetUpLogging("pelab", {.level = "error"}); !status.ok())
    return 1;
  pelab::client::StandardOutput output;
  pelab::client::Context context;
  context.stdout_is_terminal = isatty(STDOUT_FILENO) != 0;
  context.style = pelab::render::StyleOfStdout();
  context.out = [&output](const std::string& text) { output.Write(text); };
  context.out_failed = [&output] { return output.failed(); };
  context.err = [](const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), stderr);
    std::fflush(stderr);
  };
  return output.Finish(pelab::client::RunPelab(argc, argv, context));
}
