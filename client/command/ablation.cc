#include <CLI/CLI.hpp>

#include "client/command/ablation_options.h"
#include "client/command/commands.h"
#include "client/command/where_option.h"
#include "client/figure/paper.h"
#include "client/options/outputs.h"
#include "client/source/connect.h"
#include "client/terminal/ablation_maps.h"
#include "client/terminal/put.h"
#include "client/terminal/show.h"
#include "client/terminal/unknown_values.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/catalog/catalog.h"
#include "core/results/rows.h"

namespace pelab::client {
namespace {

struct AblationOptions {
  std::string target;
  std::string sweep;
  std::string where;
  results::AblationChoice choice;
  std::string metric = "accuracy_drop";
  bool strip = false;
  bool by_index = false;
  bool by_rank = false;
  PaperOptions paper;
};

absl::Status PutForPaper(const Context& context, const AblationOptions& options,
                         const std::string& title, const std::vector<AblationMap>& maps) {
  const Paper paper = *PaperOf(context.options.output_name);
  if (options.strip) {
    return absl::InvalidArgumentError(Concat("--strip works only with --output table; --output ",
                                             context.options.output_name, " gives the maps"));
  }
  if (maps.empty()) {
    return absl::FailedPreconditionError(Concat(title, " has no head ablation yet"));
  }
  if (paper == Paper::kSvg || paper == Paper::kPdf) {
    return PutPaper(context, options.paper,
                    DrawHeatMaps(AblationFigure(maps, title),
                                 paper == Paper::kSvg ? Vector::kSvg : Vector::kPdf));
  }
  std::vector<PaperTable> tables;
  tables.reserve(maps.size());
  for (const AblationMap& map : maps) tables.push_back(AblationTable(map));
  return PutPaper(context, options.paper, TablesText(tables, paper));
}

results::HeadOrder OrderOf(const AblationOptions& options) {
  if (options.by_index) return results::HeadOrder::kIndex;
  return options.by_rank ? results::HeadOrder::kRank : results::HeadOrder::kByEncoding;
}

render::Json WithIntervals(const std::vector<v1::HeadAblationRow>& rows) {
  render::Json heads = render::Json::array();
  for (const v1::HeadAblationRow& row : rows) heads.push_back(results::WithIntervals(row));
  return heads;
}

std::string TextOf(const AblationOptions& options, const std::string& title,
                   const std::vector<AblationMap>& maps, const render::Style& style) {
  if (maps.empty()) return Concat(title, " has no head ablation yet\n");
  std::string text;
  for (const AblationMap& map : maps) {
    text += (text.empty() ? "" : "\n") +
            (options.strip ? AblationStripText(map, style) : AblationMapText(map, style));
  }
  return Concat(text, "\n", AblationNotes(maps, style));
}

absl::StatusOr<int> Run(const Context& context, const AblationOptions& options) {
  PELAB_RETURN_IF_ERROR(CheckPaper(context, options.paper));
  PELAB_RETURN_IF_ERROR(CheckTargetNames(options.target, options.sweep, options.where));
  const auto metric = results::ParseAblationMetric(options.metric);
  if (!metric.ok()) return Annotate(metric.status(), "--metric");
  PELAB_ASSIGN_OR_RETURN(auto source, FindSource(context.options));
  PELAB_ASSIGN_OR_RETURN(const Target target,
                         FindTarget(*source, options.target, options.sweep, options.where));
  PELAB_ASSIGN_OR_RETURN(auto rows, source->HeadAblations(target.filter));
  PELAB_RETURN_IF_ERROR(NoteUnknownValues(context, *source, target.filter, rows.size()));
  PELAB_RETURN_IF_ERROR(ChooseByFlags(options.choice, rows));
  if (context.output() == Output::kCsv) {
    std::vector<std::string> columns = results::ColumnsOf<v1::HeadAblationRow>();
    for (const char* name :
         {"drop_counts", "drop_interval", "nll_drop_counts", "nll_drop_interval"})
      columns.emplace_back(name);
    return Put(context, {.columns = columns, .csv = [&] { return WithIntervals(rows); }});
  }
  PELAB_ASSIGN_OR_RETURN(const auto jobs, source->Jobs(target.filter));
  PELAB_ASSIGN_OR_RETURN(const auto analyses, source->Analyses(target.filter, "head_ablation"));
  const results::Variants variants = results::VariantsOf(analyses);
  PELAB_ASSIGN_OR_RETURN(results::CellTable cells, results::BuildCells(jobs, "test_accuracy", {}));
  if (!target.is_sweep) results::OneSeedEach(cells);
  const auto json = [&] {
    return render::Json{
        {"jobs", results::ToJsonArray(jobs)},
        {"head_ablation", WithIntervals(rows)},
        {"metric", options.metric},
        {"means", results::ToJsonArray(results::MeanAblations(cells, rows, variants, *metric))}};
  };
  const auto maps = [&] { return AblationMaps(cells, rows, variants, *metric, OrderOf(options)); };
  if (PaperOf(context.options.output_name)) {
    PELAB_RETURN_IF_ERROR(PutForPaper(context, options, target.title, maps()));
    return kExitOk;
  }
  const auto text = [&] { return TextOf(options, target.title, maps(), context.style); };
  return Put(context, {.json = json, .text = text, .rows = "head_ablation"});
}

}  // namespace

void AddAblation(Commands& commands) {
  auto options = std::make_shared<AblationOptions>();
  CLI::App* app =
      AddCommand(commands, "ablation",
                 "the accuracy lost without each attention head: layers x heads, in points",
                 "  pelab ablation 12\n"
                 "  pelab ablation quick --strip\n"
                 "  pelab ablation quick --method mean --metric nll_drop\n"
                 "  pelab ablation quick --output json\n"
                 "  pelab ablation quick --output svg --out heads.svg");
  AddTarget(app, options->target, options->sweep);
  AddWhere(app, options->where);
  AddChoice(app, options->choice);
  app->add_option("--metric", options->metric,
                  "what to draw: accuracy_drop, nll_drop or normalised_drop [default: "
                  "accuracy_drop]; json and csv carry all, with intervals");
  app->add_flag("--strip", options->strip,
                "a line a layer with its heads along the axis, in place of the map");
  AddPaperOptions(app, options->paper);
  std::vector<std::string_view> differing;
  for (const catalog::Entry& pe : catalog::Pes()) {
    if (pe.heads_differ) differing.push_back(pe.name);
  }
  CLI::Option* by_index =
      app->add_flag("--by-index", options->by_index,
                    Concat("average over seeds by head number [default: only where the encoding "
                           "tells heads apart, as ",
                           Join(differing, " and "), " do]"));
  app->add_flag("--by-rank", options->by_rank,
                "average over seeds by rank within each layer: 1 is each seed's largest drop "
                "[default: where the encoding treats heads alike]")
      ->excludes(by_index);
  app->callback([&commands, options] {
    commands.chosen = [&commands, options] { return Run(*commands.context, *options); };
  });
}

}  // namespace pelab::client
