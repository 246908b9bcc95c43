#include <CLI/CLI.hpp>

#include "client/command/commands.h"
#include "client/command/show.h"
#include "client/connect.h"
#include "client/report/pictures.h"
#include "client/rows.h"
#include "core/base/status.h"
#include "core/views/text.h"

namespace pelab::client {
namespace {

struct Options {
  std::string target;
  std::string sweep;
};

absl::StatusOr<int> Run(const Context& context, const Options& options) {
  PELAB_RETURN_IF_ERROR(CheckTargetNames(options.target, options.sweep));
  auto source = FindSource(context.options);
  if (!source.ok()) return source.status();
  auto target = FindTarget(**source, options.target, options.sweep);
  if (!target.ok()) return target.status();
  auto rows = (*source)->HeadAblations(target->filter);
  if (!rows.ok()) return rows.status();
  if (context.output() == Output::kCsv) {
    PutCsv(context, kHeadAblationColumns, ToJsonArray(*rows));
    return kExitOk;
  }
  auto jobs = (*source)->Jobs(target->filter);
  if (!jobs.ok()) return jobs.status();
  if (context.output() == Output::kJson) {
    PutJson(context, {{"jobs", ToJsonArray(*jobs)}, {"head_ablation", ToJsonArray(*rows)}});
    return kExitOk;
  }
  auto cells = BuildCells(*jobs, "test_accuracy", {});
  if (!cells.ok()) return cells.status();
  if (!target->is_sweep) NameSeeds(*cells);
  std::string text;
  for (const AblationMap& map : MeanAblations(*cells, *rows)) {
    text += (text.empty() ? "" : "\n") + render::HeatMapText(map.map, context.style);
  }
  context.out(text.empty() ? Concat(target->title, " has no head ablation yet\n") : text);
  return kExitOk;
}

}  // namespace

void AddAblation(Commands& commands) {
  auto options = std::make_shared<Options>();
  CLI::App* app = AddCommand(commands, "ablation",
                             "what each attention head is worth: layers x heads, in points",
                             "  pelab ablation 12\n"
                             "  pelab ablation quick\n"
                             "  pelab ablation quick --output json");
  app->add_option("JOB|SWEEP", options->target, "a job's number or key prefix, or a sweep's name");
  app->add_option("--sweep", options->sweep,
                  "a sweep by its number or name, in place of JOB|SWEEP");
  app->callback([&commands, options] {
    commands.chosen = [&commands, options] { return Run(*commands.context, *options); };
  });
}

}  // namespace pelab::client
