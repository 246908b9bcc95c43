#include "client/app.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <exception>

#include "client/command/commands.h"
#include "client/errors.h"
#include "client/help_format.h"
#include "client/outputs.h"
#include "core/catalog/catalog.h"
#include "core/rpc/cli_options.h"
#include "core/views/text.h"

namespace pelab::client {
namespace {

constexpr char kDescription[] =
    "pelab runs sweeps of positional encodings x tasks x seeds and keeps every result.\n"
    "A command finds its coordinator by --server, then PELAB_SERVER, then the lock file of --db; "
    "reading commands fall back to reading the file itself when nobody serves it.";
constexpr char kFooter[] =
    "Examples:\n"
    "  pelab run docs/sweeps/quick.yaml\n"
    "  pelab results quick\n"
    "  pelab submit table1.yaml --server gpu01:7470 --watch\n"
    "Exit status: 0 all well, 1 failed, 2 usage or invalid input, 3 finished but not every job "
    "succeeded, 4 no coordinator.";

// Any output that some command takes: whether this one does is checked once the command is known.
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

// `outputs`: what --output takes, in the help.
void AddGlobalFlags(CLI::App& app, GlobalOptions& options,
                    const std::vector<std::string>& outputs) {
  const char* group = "Where and how";
  app.add_option(
         "--server", options.server,
         "coordinator: unix:PATH or HOST:PORT [default: $PELAB_SERVER, then whoever serves --db]")
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
  app.add_flag("--no-color", options.no_color, "no colours on a terminal (nor with NO_COLOR set)")
      ->group(group);
  rpc::AddClientSecurityFlags(app, &options.security);
}

// Errors of the command line have to know the output format before it is read.
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

// Errors are lower-case and one line.
std::string OneLine(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  const bool is_word = text.size() > 1 && std::islower(static_cast<unsigned char>(text[1])) != 0;
  if (is_word || text.starts_with("A "))
    text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

// "frob" of `pelab frob`: the first word, where it is no command.
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

int UsageError(const CLI::App& app, const CLI::ParseError& error, int argc, const char* const* argv,
               Context& context) {
  if (const char* format = JsonAskedFor(argc, argv)) context.options.output_name = format;
  std::string message = UnknownCommand(app, argc, argv);
  if (message.empty()) message = OneLine(error.what());
  return ReportError(context, absl::InvalidArgumentError(Concat(message, " (see pelab --help)")),
                     "");
}

void AddAll(Commands& commands) {
  AddRun(commands);
  AddSubmit(commands);
  AddStatus(commands);
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
  AddAnalyses(commands);
  AddAnalyze(commands);
  AddArtifacts(commands);
  AddReport(commands);
  AddCatalog(commands);
  AddWorkers(commands);
  AddExport(commands);
  AddImport(commands);
  AddDb(commands);
  AddCompletion(commands);
}

}  // namespace

CLI::App* AddCommand(Commands& commands, const std::string& name, const std::string& help,
                     const std::string& examples) {
  CLI::App* command = commands.app->add_subcommand(name, help);
  command->footer("Examples:\n" + examples);
  AddGlobalFlags(*command, commands.context->options, OutputsOf(name));
  return command;
}

int RunPelab(int argc, const char* const* argv, Context& context) {
  if (const char* server = std::getenv("PELAB_SERVER")) context.options.server = server;
  CLI::App app(kDescription, "pelab");
  app.footer(kFooter);
  app.formatter(std::make_shared<HelpFormat>(context.style.width));  // of its commands too
  app.set_version_flag("--version", "pelab " PELAB_VERSION);
  app.set_help_all_flag("--help-all", "help of every command");
  app.require_subcommand(1);
  AddGlobalFlags(app, context.options, AllOutputs());
  Commands commands{.app = &app, .context = &context};
  AddAll(commands);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help, --version
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    return UsageError(app, error, argc, argv, context);
  }
  if (context.options.no_color) context.style.color = false;
  for (const CLI::App* command : app.get_subcommands()) {
    const absl::Status status = CheckOutput(command->get_name(), context.options.output_name);
    if (!status.ok()) return ReportError(context, status, "");
  }
  absl::StatusOr<int> code = absl::InternalError("no command was chosen");
  try {
    code = commands.chosen();
  } catch (const std::exception& error) {
    code = absl::InternalError(Concat("internal error: ", error.what()));
  }
  return code.ok() ? *code : ReportError(context, code.status(), commands.document_name);
}

}  // namespace pelab::client
