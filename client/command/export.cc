#include <CLI/CLI.hpp>

#include "client/command/commands.h"
#include "client/command/where_option.h"
#include "client/export/exporter.h"
#include "client/source/connect.h"
#include "client/terminal/put.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/render/text.h"

namespace pelab::client {
namespace {

struct ExportOptions {
  std::string sweep;
  std::string where;
  std::string out;
};

absl::StatusOr<int> Run(const Context& context, const ExportOptions& options) {
  PELAB_ASSIGN_OR_RETURN(const auto source, FindSource(context.options));
  PELAB_ASSIGN_OR_RETURN(const ExportReport report,
                         ExportSweep(*source, options.sweep, options.where, options.out,
                                     [&context](const std::string& done) {
                                       context.err(Concat("pelab: ", render::Escape(done), "\n"));
                                     }));
  render::Json files = render::Json::array();
  std::uint64_t bytes = 0;
  for (const WrittenFile& file : report.files) {
    files.push_back(
        {{"file", file.name}, {"rows", file.rows}, {"bytes", file.bytes}, {"sha256", file.sha256}});
    bytes += file.bytes;
  }
  std::string text = Concat("exported sweep ", render::Escape(report.sweep.name()),
                            options.where.empty() ? "" : " where ", render::Escape(options.where),
                            " to ", render::Escape(options.out), ": ", report.jobs, " jobs, ",
                            files.size(), " files, ", bytes, " bytes\nbegin with README.md\n");
  if (report.trained != report.jobs) {
    text += Concat(report.jobs - report.trained, " of its ", report.jobs,
                   " jobs are not trained; README.md says which\n");
  }
  render::Json value = {{"sweep_id", report.sweep.sweep_id()},
                        {"sweep", report.sweep.name()},
                        {"where", options.where},
                        {"directory", options.out},
                        {"jobs", report.jobs},
                        {"trained", report.trained},
                        {"complete", report.trained == report.jobs},
                        {"files", files}};
  return Put(context, {.json = [&] { return value; },
                       .text = [&] { return text; },
                       .columns = {"file", "rows", "bytes", "sha256"},
                       .csv = [&] { return files; }});
}

}  // namespace

void AddExport(Commands& commands) {
  auto options = std::make_shared<ExportOptions>();
  CLI::App* app =
      AddCommand(commands, "export", "a sweep's results as self-explanatory CSV files",
                 "  pelab export quick --out quick-results\n"
                 "  pelab export 3 --out /data/table1 --server gpu01:7470 --output json\n"
                 "Jobs, curves, head ablations, deposits, analyses, attempts, specs, the document, "
                 "provenance, "
                 "checksums and a README.md with every column. DIR is there whole or not at all.");
  app->add_option("SWEEP", options->sweep, "number or name of a sweep")->required();
  AddWhere(app, options->where);
  app->add_option("--out", options->out, "a new or empty folder")->type_name("DIR")->required();
  app->callback([&commands, options] {
    commands.chosen = [&commands, options] { return Run(*commands.context, *options); };
  });
}

}  // namespace pelab::client
