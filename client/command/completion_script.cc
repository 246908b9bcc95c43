#include "client/command/completion_script.h"

#include <CLI/CLI.hpp>
#include <string_view>
#include <vector>

#include "client/options/outputs.h"
#include "core/base/strings.h"

namespace pelab::client {
namespace {

// The spellings of one option or flag: "-f" and "--db".
std::vector<std::string> Names(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

std::vector<const CLI::App*> Subcommands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::vector<std::string> OptionNames(const CLI::App& app) {
  std::vector<std::string> all;
  for (const CLI::Option* option : app.get_options()) {
    for (std::string& name : Names(*option)) all.push_back(std::move(name));
  }
  return all;
}

// The words that may follow `app`: its subcommands and its flags.
std::string Words(const CLI::App& app) {
  std::vector<std::string> words;
  for (const CLI::App* sub : Subcommands(app)) words.push_back(sub->get_name());
  for (std::string& name : OptionNames(app)) words.push_back(std::move(name));
  return Join(words, " ");
}

// One line for each command and nested command, under "run" or "db check".
void BashCases(const CLI::App& app, const std::string& path, std::string& out) {
  out += Concat("    \"", path, "\") words=\"", Words(app), "\" ;;\n");
  for (const CLI::App* sub : Subcommands(app)) {
    BashCases(*sub, path.empty() ? sub->get_name() : Concat(path, " ", sub->get_name()), out);
  }
}

// ":run"|":submit", and "admin ca:init" for nested commands: adds a command to the path before it.
void BashPaths(const CLI::App& app, const std::string& path, std::string& out) {
  const auto subs = Subcommands(app);
  if (subs.empty()) return;
  std::vector<std::string> patterns;
  patterns.reserve(subs.size());
  for (const CLI::App* sub : subs)
    patterns.push_back(Concat("\"", path, ":", sub->get_name(), "\""));
  out += Concat("      ", Join(patterns, "|"), ") path=\"", path, path.empty() ? "" : " ",
                "$word\" ;;\n");
  for (const CLI::App* sub : subs) {
    BashPaths(*sub, path.empty() ? sub->get_name() : Concat(path, " ", sub->get_name()), out);
  }
}

std::string ZshQuote(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else if (c == '[' || c == ']' || c == ':' || c == '\\') {
      out += '\\';
      out += c;
    } else {
      out += c == '\n' ? ' ' : c;
    }
  }
  return out;
}

std::string ZshOptions(const CLI::App& app) {
  std::string out;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : Names(*option)) {
      out += Concat("'", name, "[", ZshQuote(option->get_description()), "]");
      if (option->get_items_expected_max() > 0 && name != "--help" && name != "-h") {
        out += Concat(":value:", name == "--output"
                                     ? Concat("(", Join(OutputsOf(app.get_name()), " "), ")")
                                     : "_files");
      }
      out += "' ";
    }
  }
  return out;
}

void ZshFunctions(const CLI::App& app, const std::string& function, std::string& out) {
  const auto subs = Subcommands(app);
  out += Concat(function, "() {\n");
  if (subs.empty()) {
    out += Concat("  _arguments ", ZshOptions(app), "'*:file:_files'\n}\n");
    return;
  }
  out += Concat("  local state\n  _arguments -C ", ZshOptions(app),
                "'1:command:->command' '*::argument:->argument'\n");
  out += "  case $state in\n    command)\n      local -a commands\n      commands=(\n";
  for (const CLI::App* sub : subs) {
    out += Concat("        '", sub->get_name(), ":", ZshQuote(sub->get_description()), "'\n");
  }
  out += "      )\n      _describe command commands ;;\n    argument)\n      case $words[1] in\n";
  for (const CLI::App* sub : subs) {
    out += Concat("        ", sub->get_name(), ") ", function, "_", sub->get_name(), " ;;\n");
  }
  out += "      esac ;;\n  esac\n}\n";
  for (const CLI::App* sub : subs) ZshFunctions(*sub, Concat(function, "_", sub->get_name()), out);
}

}  // namespace

std::string BashCompletion(const CLI::App& app) {
  std::string out =
      "# bash completion of pelab\n"
      "_pelab() {\n"
      "  local cur=\"${COMP_WORDS[COMP_CWORD]}\" prev=\"${COMP_WORDS[COMP_CWORD-1]}\"\n"
      "  local path=\"\" words=\"\" word\n"
      "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
      "    case \"$path:$word\" in\n";
  BashPaths(app, "", out);
  out +=
      "    esac\n"
      "  done\n"
      "  if [ \"$prev\" = --output ]; then\n"
      "    local outputs\n"
      "    case \"$path\" in\n";
  for (const CLI::App* sub : Subcommands(app)) {
    const std::vector<std::string> outputs = OutputsOf(sub->get_name());
    if (outputs == OutputsOf("")) continue;
    out += Concat("      ", sub->get_name(), ") outputs=\"", Join(outputs, " "), "\" ;;\n");
  }
  out += Concat("      *) outputs=\"", Join(OutputsOf(""), " "), "\" ;;\n    esac\n");
  out +=
      "    COMPREPLY=($(compgen -W \"$outputs\" -- \"$cur\"))\n"
      "    return\n"
      "  fi\n"
      "  case \"$path\" in\n";
  BashCases(app, "", out);
  out +=
      "  esac\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
      "}\n"
      "complete -o default -F _pelab pelab\n";
  return out;
}

std::string ZshCompletion(const CLI::App& app) {
  std::string out = "#compdef pelab\n";
  ZshFunctions(app, "_pelab", out);
  return out +
         "if [ \"$funcstack[1]\" = _pelab ]; then _pelab \"$@\"; else compdef _pelab pelab; fi\n";
}

}  // namespace pelab::client
