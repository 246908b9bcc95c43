#include "client/options/repeat_command.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "client/claims/sheet_sweep.h"
#include "client/options/own_files.h"
#include "core/base/strings.h"

namespace pelab::client {

std::string ShellWord(const std::string& argument) {
  const auto plain = [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("-_./=:,+@%").find(static_cast<char>(c)) != std::string_view::npos;
  };
  if (!argument.empty() && std::all_of(argument.begin(), argument.end(), plain)) return argument;
  std::string quoted = "'";
  for (const char c : argument) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string RunCommand(const v1::Sweep& sweep) {
  if (IsOfSheet(sweep)) return Concat("pelab settle ", ShellWord(sweep.file_name()));
  std::string command =
      Concat("pelab run ", ShellWord(sweep.file_name().empty() ? "sweep.yaml" : sweep.file_name()));
  for (const v1::Override& override : sweep.overrides()) {
    if (!FileOfOverride(override).empty()) continue;  // the command reads the file again
    command += override.field() == "name"
                   ? Concat(" --name ", ShellWord(override.value()))
                   : Concat(" --set ", ShellWord(Concat(override.field(), "=", override.value())));
  }
  return command;
}

std::string TrainText(const Context& context, const v1::Sweep& sweep) {
  const std::string& database = context.options.database;
  const std::string command =
      sweep.sweep_id() == 0 ? "pelab run with the file of their sweep" : RunCommand(sweep);
  return Concat("nobody serves ", database, ": ", command, " --db ", ShellWord(database),
                " trains them\n");
}

}  // namespace pelab::client
