#include "client/app.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <set>
#include <sstream>
#include <utility>

#include "client/command/commands.h"
#include "client/options/outputs.h"
#include "client/terminal/errors.h"
#include "client/terminal/help_format.h"
#include "core/base/build_info.h"
#include "core/base/file.h"
#include "core/base/strings.h"
#include "core/catalog/catalog.h"
#include "core/render/text.h"
#include "core/rpc/cli_options.h"
#include "core/trace/command_trace.h"

namespace pelab::client {
namespace {

constexpr char kDescription[] =
    "pelab runs sweeps of positional encodings x tasks x seeds and keeps every result.\n"
    "A command finds its coordinator by --server, then PELAB_SERVER, then the lock file of --db; "
    "reading commands fall back to reading the file itself if no coordinator serves it.";
constexpr char kFooter[] =
    "Examples:\n"
    "  pelab run docs/sweeps/quick.yaml\n"
    "  pelab results quick\n"
    "  pelab submit table1.yaml --server gpu01:7470 --watch\n"
    "Exit status: 0 success, 1 failure, 2 wrong usage, invalid input or a refused request, "
    "3 finished but not every job succeeded, 4 no coordinator, 130 interrupted.";

// Accepts every output that some command accepts. CheckOutput checks the command's own outputs once
// the command is known.
CLI::Validator KnownOutput(const std::vector<std::string>& outputs) {
  const auto check = [](const std::string& output) {
    const std::vector<std::string> all = AllOutputs();
    const bool known = std::find(all.begin(), all.end(), output) != all.end();
    return known ? std::string() : Concat(output, " not in {", Join(all, ","), "}");
  };
  CLI::Validator validator(Concat("{", Join(outputs, ","), "}"));
  validator.operation([check](std::string& output) { return check(output); });
  return validator;
}

// `outputs`: the values of --output that the help lists.
void AddGlobalFlags(CLI::App& app, GlobalOptions& options,
                    const std::vector<std::string>& outputs) {
  const char* group = "Where and how";
  app.add_option("--server", options.server,
                 "coordinator: unix:PATH or HOST:PORT [default: $PELAB_SERVER, then the "
                 "coordinator of --db]")
      ->type_name("ADDR")
      ->group(group);
  app.add_option_function<std::string>(
         "--db",
         [&options](const std::string& path) {
           options.database = path;
           options.database_given = true;
         },
         "database file [default: pelab.db]")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--output", options.output_name, OutputHelp(outputs))
      ->check(KnownOutput(outputs))
      ->type_name("FORMAT")
      ->group(group);
  app.add_flag("--no-color", options.no_color, "no colors on a terminal (NO_COLOR does the same)")
      ->group(group);
  rpc::AddTraceFlag(app, &options.trace_file);
  rpc::AddClientSecurityFlags(app, &options.security);
}

// Finds --output before the command line is parsed, since parse errors need the output format too.
const char* JsonAskedFor(int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    for (const char* format : {"json", "jsonl"}) {
      const bool is_next = i + 1 < argc && std::strcmp(argv[i + 1], format) == 0;
      if (std::string(argv[i]) == Concat("--output=", format)) return format;
      if (std::strcmp(argv[i], "--output") == 0 && is_next) return format;
    }
  }
  return nullptr;
}

// Puts an error message on one line and starts it in lower case.
std::string OneLine(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  const bool is_word = text.size() > 1 && std::islower(static_cast<unsigned char>(text[1])) != 0;
  if (is_word || text.starts_with("A "))
    text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

// The message for "frob" of `pelab frob`; empty if the first word is a command or a flag.
std::string UnknownCommand(const CLI::App& app, int argc, const char* const* argv) {
  if (argc < 2 || argv[1][0] == '-') return "";
  std::vector<std::string_view> known;
  const auto subcommands = app.get_subcommands([](const CLI::App*) { return true; });
  std::vector<std::string> names;
  names.reserve(subcommands.size());
  for (const CLI::App* sub : subcommands) names.push_back(sub->get_name());
  known.assign(names.begin(), names.end());
  if (std::find(known.begin(), known.end(), argv[1]) != known.end()) return "";
  const std::string_view near = catalog::DidYouMean(argv[1], known);
  return Concat("unknown command \"", argv[1], "\"", near.empty() ? "" : "; did you mean ", near,
                "; known: ", Join(known, ", "));
}

// The commands that were typed: pelab, then `workers`, then `drain`.
std::vector<const CLI::App*> Typed(const CLI::App& app) {
  std::vector<const CLI::App*> typed = {&app};
  while (!typed.back()->get_subcommands().empty()) {
    typed.push_back(typed.back()->get_subcommands().front());
  }
  return typed;
}

// "; did you mean --seed?" for "--sede=5" or "--sede", from the existing flags and commands.
std::string Nearest(const std::vector<const CLI::App*>& typed, const std::string& argument) {
  std::vector<std::string> names;
  if (argument.starts_with("-")) {
    for (const CLI::App* app : typed) {
      for (const CLI::Option* option : app->get_options()) {
        for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
      }
    }
  } else {
    for (const CLI::App* sub : typed.back()->get_subcommands([](const CLI::App*) { return true; }))
      names.push_back(sub->get_name());
  }
  const std::vector<std::string_view> known(names.begin(), names.end());
  const std::string_view near = catalog::DidYouMean(argument.substr(0, argument.find('=')), known);
  return near.empty() ? "" : Concat("; did you mean ", near, "?");
}

// The message about arguments that matched no option and no positional, in the order in which they
// were typed.
std::string Unexpected(const CLI::App& app) {
  const std::vector<std::string> arguments = app.remaining(/*recurse=*/true);
  if (arguments.empty()) return "";
  const std::vector<const CLI::App*> typed = Typed(app);
  std::string near;
  for (const std::string& argument : arguments) {
    if (near.empty()) near = Nearest(typed, argument);
  }
  return Concat("unexpected argument", arguments.size() > 1 ? "s" : "", ": ", Join(arguments, " "),
                near);
}

// The command whose --help to read: "pelab workers drain".
std::string NameOf(const CLI::App& app) {
  std::string name;
  for (const CLI::App* part : Typed(app)) name += (name.empty() ? "" : " ") + part->get_name();
  return name;
}

// Filters what goes to standard output, so that data cannot control a terminal even where a command
// forgot to escape it. Figures are bytes, and a file or a program that reads JSON or CSV gets the
// data as it is.
void FilterOutput(Context& context) {
  const bool to_file = !context.stdout_is_terminal && context.output() != Output::kTable;
  if (to_file || PaperOf(context.options.output_name)) return;
  const render::Markup markup = context.output() == Output::kJson  ? render::Markup::kJson
                                : context.output() == Output::kCsv ? render::Markup::kCsv
                                : context.style.color              ? render::Markup::kColored
                                                                   : render::Markup::kPlain;
  context.out = [out = std::move(context.out), markup](const std::string& text) {
    out(render::Displayable(text, markup));
  };
}

int UsageError(const CLI::App& app, const CLI::ParseError& error, int argc, const char* const* argv,
               Context& context) {
  if (const char* format = JsonAskedFor(argc, argv)) context.options.output_name = format;
  FilterOutput(context);
  std::string message = UnknownCommand(app, argc, argv);
  // If an option is missing, an unknown argument may be its misspelling.
  const bool extras = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError);
  const bool missing = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::RequiredError);
  if (message.empty() && (extras || missing)) message = Unexpected(app);
  if (message.empty()) message = OneLine(error.what());
  return ReportError(
      context, absl::InvalidArgumentError(Concat(message, " (see ", NameOf(app), " --help)")), "");
}

// Whether a command may be parsed or described: its name is an argument, or all are described.
std::function<bool(const std::string&)> MayBeShown(int argc, const char* const* argv) {
  std::set<std::string> typed(argv, argv + argc);
  const bool all = typed.contains("--help-all") || typed.contains("completion");
  return [all, typed = std::move(typed)](const std::string& command) {
    return all || typed.contains(command);
  };
}

void AddAll(Commands& commands) {
  AddRun(commands);
  AddSubmit(commands);
  AddCheck(commands);
  AddStatus(commands);
  AddSweeps(commands);
  AddJobs(commands);
  AddLogs(commands);
  AddCancel(commands);
  AddPause(commands);
  AddResume(commands);
  AddPriority(commands);
  AddRetry(commands);
  AddExtend(commands);
  AddResults(commands);
  AddCurves(commands);
  AddDiff(commands);
  AddAblation(commands);
  AddDeposits(commands);
  AddClaims(commands);
  AddSettle(commands);
  AddAnalyses(commands);
  AddAnalyze(commands);
  AddArtifacts(commands);
  AddReport(commands);
  AddCatalog(commands);
  AddWorkers(commands);
  AddAlloc(commands);
  AddAdmin(commands);
  AddAudit(commands);
  AddExport(commands);
  AddExportModel(commands);
  AddImport(commands);
  AddDb(commands);
  AddCompletion(commands);
}

// `name`: "pelab workers drain".
absl::StatusOr<int> RunTraced(const std::string& name, const Commands& commands) {
  trace::CommandTrace trace;
  if (const std::string& file = commands.context->options.trace_file; !file.empty()) {
    if (const absl::Status status = trace.RecordTo(file, "pelab"); !status.ok()) return status;
  }
  absl::StatusOr<int> code = absl::InternalError("no command was chosen");
  try {
    code = commands.chosen();
  } catch (const std::exception& error) {
    code = absl::InternalError(Concat("internal error: ", error.what()));
  }
  const std::string error = !code.ok()   ? std::string(code.status().message())
                            : *code != 0 ? Concat("exit status ", *code)
                                         : "";
  if (const std::uint64_t lost = trace.Finish(name, error); lost > 0) {
    commands.context->err(
        Concat("pelab: ", lost, " spans could not be written to ", trace.file(), "\n"));
  }
  return code;
}

// PELAB_SERVER comes before --db, which is easily forgotten where it was set long ago.
void NoteUnusedDatabase(const Context& context, const std::string& command) {
  const GlobalOptions& options = context.options;
  if (!options.database_given || options.server.empty()) return;
  if (command == "pelab run" || command.starts_with("pelab db ")) return;
  context.err(Concat("note: ", command, " asks the coordinator at ", options.server,
                     ", which --server or PELAB_SERVER names; --db is not used\n"));
}

}  // namespace

CLI::App* AddCommand(Commands& commands, const std::string& name, const std::string& help,
                     const std::string& examples) {
  CLI::App* command = commands.app->add_subcommand(name, help);
  command->footer("Examples:\n" + examples);
  if (commands.shown(name)) AddGlobalFlags(*command, commands.context->options, OutputsOf(name));
  return command;
}

int RunPelab(int argc, const char* const* argv, Context& context) {
  if (const char* server = std::getenv("PELAB_SERVER")) context.options.server = server;
  CLI::App app(kDescription, "pelab");
  app.footer(kFooter);
  app.formatter(std::make_shared<HelpFormat>(context.style.width));  // subcommands inherit it
  app.set_version_flag("--version", "pelab " + VersionText());
  app.set_help_all_flag("--help-all", "help of every command");
  app.require_subcommand(1);
  AddGlobalFlags(app, context.options, AllOutputs());
  Commands commands{.app = &app, .context = &context, .shown = MayBeShown(argc, argv)};
  AddAll(commands);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help, --version
    std::ostringstream text;
    const int code = app.exit(success, text, text);
    context.out(text.str());
    return code;
  } catch (const CLI::ParseError& error) {
    return UsageError(app, error, argc, argv, context);
  }
  if (context.options.no_color) context.style.color = false;
  NoteUnusedDatabase(context, NameOf(app));
  context.options.database = ResolveLinks(context.options.database);
  for (const CLI::App* command : app.get_subcommands()) {
    const absl::Status status = CheckOutput(command->get_name(), context.options.output_name);
    if (!status.ok()) return ReportError(context, status, "");
  }
  FilterOutput(context);
  absl::StatusOr<int> code = RunTraced(NameOf(app), commands);
  return code.ok() ? *code : ReportError(context, code.status(), commands.document_name);
}

}  // namespace pelab::client
