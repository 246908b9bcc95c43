#include <CLI/CLI.hpp>
#include <algorithm>

#include "client/command/commands.h"
#include "client/command/completion_script.h"
#include "core/base/strings.h"

namespace pelab::client {

void AddCompletion(Commands& commands) {
  auto shell = std::make_shared<std::string>();
  CLI::App* app =
      AddCommand(commands, "completion", "a script that completes pelab's commands in a shell",
                 "  source <(pelab completion bash)\n"
                 "  pelab completion zsh > \"${fpath[1]}/_pelab\"");
  app->add_option("SHELL", *shell, "bash or zsh")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh"}));
  app->callback([&commands, shell] {
    commands.chosen = [&commands, shell]() -> absl::StatusOr<int> {
      commands.context->out(*shell == "bash" ? BashCompletion(*commands.app)
                                             : ZshCompletion(*commands.app));
      return kExitOk;
    };
  });
}

}  // namespace pelab::client
