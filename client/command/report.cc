#include <CLI/CLI.hpp>
#include <utility>

#include "absl/time/clock.h"
#include "client/command/commands.h"
#include "client/command/where_option.h"
#include "client/options/out_file.h"
#include "client/options/repeat_command.h"
#include "client/report/html_data.h"
#include "client/report/html_page.h"
#include "client/source/connect.h"
#include "client/terminal/put.h"
#include "core/base/file.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/experiment/sweep_name.h"
#include "core/render/text.h"

namespace pelab::client {
namespace {

constexpr char kOut[] = "report.html";

struct ReportCommandOptions {
  std::vector<std::string> sweeps;
  std::string where;
  std::string out = kOut;
  bool force = false;
  bool all_seeds = false;
};

// "quick", "table1 and figure02", "table1 and 6 more".
std::string TitleOf(const ReportInput& input, const ReportCommandOptions& options) {
  const std::size_t count = input.sweeps.size();
  std::string title = input.sweeps.front().name();
  if (count == 2) title += Concat(" and ", input.sweeps.back().name());
  if (count > 2) title += Concat(" and ", count - 1, " more");
  return options.where.empty() ? title : Concat(title, " where ", options.where);
}

// Sweeps are named as the user named them: a number stays that sweep when a namesake comes.
std::string CommandLine(const ReportCommandOptions& options) {
  std::string command = "pelab report";
  for (const std::string& sweep : options.sweeps) command += Concat(" ", ShellWord(sweep));
  if (!options.where.empty()) command += Concat(" --where ", ShellWord(options.where));
  return Concat(command, options.all_seeds ? " --all-seeds" : "", " --out report.html");
}

// One line that says what the command is doing; only on a terminal.
class Progress {
 public:
  explicit Progress(const Context& context)
      : context_(context),
        shown_(context.stdout_is_terminal && context.output() == Output::kTable) {}
  ~Progress() { Clear(); }
  void Say(const std::string& doing) {
    if (shown_) context_.err(Concat("\r\x1b[K", doing, " …"));
  }
  void Clear() {
    if (std::exchange(shown_, false)) context_.err("\r\x1b[K");
  }

 private:
  const Context& context_;
  bool shown_;
};

int PutReport(const Context& context, const ReportCommandOptions& options, const ReportInput& input,
              std::size_t bytes) {
  std::size_t done = 0;
  for (const v1::JobRow& job : input.jobs) done += report::IsDone(job) ? 1 : 0;
  const std::size_t jobs = input.jobs.size();
  render::Json names = render::Json::array();
  for (const v1::Sweep& sweep : input.sweeps) names.push_back(sweep.name());
  const render::Json row = {{"report", options.out}, {"bytes", bytes},
                            {"sweeps", names},       {"jobs", jobs},
                            {"jobs_done", done},     {"cells", input.cells.cells.size()}};
  std::string text = Concat("wrote ", render::Escape(options.out), ": ", jobs, " jobs, ",
                            render::Fixed(static_cast<double>(bytes) / 1e6, 1), " MB\n");
  if (done < jobs) {
    text += Concat(jobs - done,
                   " of the jobs have no result yet or failed: they are listed in the report\n");
  }
  return PutRow(context, row, text);
}

absl::StatusOr<int> Run(const Context& context, const ReportCommandOptions& options) {
  const absl::StatusOr<std::string> file = FileToWrite(options.out, options.force);
  if (absl::IsAlreadyExists(file.status())) {
    return absl::AlreadyExistsError(
        Concat(std::string(file.status().message()), ", and --out FILE writes to another file"));
  }
  if (!file.ok()) return Annotate(file.status(), "--out");
  PELAB_ASSIGN_OR_RETURN(const auto source, FindSource(context.options));
  Progress progress(context);
  PELAB_ASSIGN_OR_RETURN(
      const ReportInput input,
      ReadReportInput(*source, options.sweeps, options.where,
                      [&](const char* what) { progress.Say(Concat("reading ", what)); }));
  progress.Say("writing");
  const std::string page =
      ReportPage(Concat(TitleOf(input, options), " – pelab report"),
                 ReportData(input, {.made_at_ms = absl::ToUnixMillis(absl::Now()),
                                    .command = CommandLine(options),
                                    .all_seeds = options.all_seeds}));
  PELAB_RETURN_IF_ERROR(WriteFileAtomically(*file, page));
  progress.Clear();
  return PutReport(context, options, input, page.size());
}

}  // namespace

void AddReport(Commands& commands) {
  auto options = std::make_shared<ReportCommandOptions>();
  CLI::App* app = AddCommand(
      commands, "report",
      "one HTML file with everything about sweeps: curves, head ablations, tables, provenance",
      "  pelab report quick\n"
      "  pelab report quick --db runs/quick.db --out quick.html --force\n"
      "  pelab report paper-table1 paper-figure05 --out paper.html\n"
      "The file opens in any browser, from disk, without a network: send it to a co-author.");
  app->add_option("SWEEP", options->sweeps, "numbers or names of sweeps")->required();
  AddWhere(app, options->where);
  app->add_option("--out", options->out, "the file to write [default: report.html]")
      ->type_name("FILE");
  app->add_flag("--force", options->force, "replace an existing file");
  app->add_flag("--all-seeds", options->all_seeds,
                "draw the curve of each seed even if these curves have more than 400,000 points");
  app->callback([&commands, options] {
    commands.chosen = [&commands, options] { return Run(*commands.context, *options); };
  });
}

}  // namespace pelab::client
