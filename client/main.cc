// pelab: the command line.
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "client/app.h"
#include "core/base/logging.h"

namespace {

void WriteTo(std::FILE* file, const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), file);
  std::fflush(file);
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // `pelab results | head` ends quietly
  if (absl::Status status = pelab::SetUpLogging("pelab", {.level = "error"}); !status.ok())
    return 1;
  pelab::client::Context context;
  context.stdout_is_terminal = isatty(STDOUT_FILENO) != 0;
  context.style = pelab::render::StyleOfStdout();
  context.out = [](const std::string& text) { WriteTo(stdout, text); };
  context.err = [](const std::string& text) { WriteTo(stderr, text); };
  return pelab::client::RunPelab(argc, argv, context);
}
