#include "client/terminal/analysis_tables.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "client/terminal/ablation_maps.h"
#include "client/terminal/columns.h"
#include "client/terminal/metric_text.h"
#include "client/terminal/plot.h"
#include "client/terminal/table.h"
#include "core/base/json_text.h"
#include "core/base/strings.h"
#include "core/render/json.h"
#include "core/render/text.h"
#include "core/results/split_scores.h"
#include "core/results/variants.h"
#include "core/stats/deposit.h"

namespace pelab::client {
namespace {

using render::Json;
using Align = render::Column::Align;

// The stored rows of one group of jobs and one variant.
struct Group {
  const results::Cell* cell = nullptr;
  results::Variant variant;
  std::vector<const v1::AnalysisRow*> rows;
};

std::vector<Group> GroupsOf(const results::CellTable& cells,
                            const std::vector<v1::AnalysisRow>& rows, const std::string& name) {
  std::map<std::int64_t, std::vector<const v1::AnalysisRow*>> by_job;
  for (const v1::AnalysisRow& row : rows) {
    if (name.empty() || row.name() == name) by_job[row.job_id()].push_back(&row);
  }
  std::vector<Group> groups;
  for (const results::Cell& cell : cells.cells) {
    std::map<results::Variant, std::vector<const v1::AnalysisRow*>> of_cell;
    for (const v1::JobRow& job : cell.jobs) {
      for (const auto* row : by_job[job.job_id()]) {
        of_cell[{row->name(), row->version(), row->parameters_json()}].push_back(row);
      }
    }
    for (auto& [variant, found] : of_cell) groups.push_back({&cell, variant, std::move(found)});
  }
  return groups;
}

std::string TitleOf(const Group& group, const std::string& what) {
  const std::string seeds = results::SeedsLabel(group.rows.size(), group.cell->jobs.size());
  return Concat(group.cell->Label(), ": ", what, " (", results::Describe(group.variant),
                seeds.empty() ? "" : ", ", seeds, ")");
}

// The values of one quantity over seeds. With a single seed, the error is the one over its
// examples.
struct Figure {
  std::vector<double> values;  // as stored
  double half_width = 0;       // of the last seed added; used if it is the only one
  bool may_be_chance = true;   // the value may be chance in every seed
  std::string Text(double factor, int decimals) const {
    if (values.empty()) return "-";
    const std::optional<double> over_seeds = stats::IntervalHalfWidth(values);
    const double half = over_seeds ? *over_seeds : half_width;
    return Concat(render::Fixed(stats::Mean(values) * factor, decimals), "±",
                  render::Fixed(half * factor, decimals), may_be_chance ? "?" : "");
  }
  void Add(const results::EntryDrop& drop) {
    values.push_back(drop.value);
    half_width = drop.half_width().value_or(0);
    may_be_chance = may_be_chance && drop.may_be_chance();
  }
};

struct LayerFigures {
  Figure drop, normalized, nll;
};

// Throws nlohmann's exceptions if the result lacks a documented member.
void AddLayers(const Json& result, std::vector<LayerFigures>& layers) {
  const auto total = result.at("total").get<std::int64_t>();
  const auto intact = result.at("intact_correct").get<std::int64_t>();
  const auto chance = result.at("chance").get<double>();
  const bool stands_out = stats::StandsOut(intact, total, chance);
  const double above_chance = static_cast<double>(intact) / static_cast<double>(total) - chance;
  const std::size_t count = result.at("lost").size();
  if (layers.size() < count) layers.resize(count);
  for (std::size_t layer = 0; layer < count; ++layer) {
    const stats::PairedDrop drop = stats::Drop({result.at("lost").at(layer).get<std::int64_t>(),
                                                result.at("gained").at(layer).get<std::int64_t>()},
                                               total);
    LayerFigures& figures = layers[layer];
    figures.drop.Add(results::Judge(drop.drop, drop.standard_error));
    if (stands_out) {
      figures.normalized.Add(
          results::Judge(drop.drop / above_chance, drop.standard_error / above_chance));
    }
    figures.nll.Add(results::Judge(
        result.at("nll").at(layer).get<double>() - result.at("intact_nll").get<double>(),
        result.at("nll_standard_error").at(layer).get<double>()));
  }
}

std::string LayerTable(const Group& group, const render::Style& style) {
  std::vector<LayerFigures> layers;
  for (const v1::AnalysisRow* row : group.rows)
    AddLayers(ParseJson<Json>(row->result_json()), layers);
  render::Table table({{"layer", Align::kRight},
                       {"accuracy lost, points", Align::kRight},
                       {"% of above chance", Align::kRight},
                       {"loss added, nats", Align::kRight}});
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    const LayerFigures& f = layers[layer];
    table.AddRow({Concat(layer), f.drop.Text(100, 1), f.normalized.Text(100, 1), f.nll.Text(1, 3)});
  }
  return render::Paint(style, "1",
                       render::Wrap(render::Escape(TitleOf(group, "without all heads of a layer")),
                                    style.width)) +
         "\n" + table.Render(style);
}

// Accuracies after each removal, by seed; entry 0 is the intact accuracy.
struct Curves {
  std::vector<std::vector<double>> greedy;       // [removed][seed]
  std::vector<std::vector<double>> random;       // [removed][seed]: mean over the random orders
  std::vector<std::pair<double, double>> range;  // [removed]: lowest and highest over all random
                                                 // orders
  std::vector<std::string> removed;              // the heads in greedy order, of the last seed
                                                 // added
};

void At(std::vector<std::vector<double>>& curve, std::size_t removed, double accuracy) {
  if (curve.size() <= removed) curve.resize(removed + 1);
  curve[removed].push_back(accuracy);
}

void AddRange(Curves& curves, std::size_t removed, double accuracy) {
  if (curves.range.size() <= removed) {
    curves.range.resize(removed + 1, {accuracy, accuracy});
  }
  curves.range[removed].first = std::min(curves.range[removed].first, accuracy);
  curves.range[removed].second = std::max(curves.range[removed].second, accuracy);
}

// Throws like AddLayers.
void AddCurves(const Json& result, Curves& curves) {
  const auto total = result.at("total").get<double>();
  const double intact = result.at("intact_correct").get<double>() / total;
  At(curves.greedy, 0, intact);
  At(curves.random, 0, intact);
  AddRange(curves, 0, intact);
  const Json& greedy = result.at("greedy");
  curves.removed.assign(1, "");
  for (std::size_t i = 0; i < greedy.at("correct").size(); ++i) {
    At(curves.greedy, i + 1, greedy.at("correct").at(i).get<double>() / total);
    const Json& head = greedy.at("heads").at(i);
    curves.removed.push_back(
        Concat("layer ", head.at(0).get<int>(), " head ", head.at(1).get<int>()));
  }
  std::vector<std::vector<double>> orders;
  for (const Json& order : result.at("random")) {
    for (std::size_t i = 0; i < order.at("correct").size(); ++i) {
      const double accuracy = order.at("correct").at(i).get<double>() / total;
      At(orders, i + 1, accuracy);
      AddRange(curves, i + 1, accuracy);
    }
  }
  for (std::size_t i = 1; i < orders.size(); ++i) At(curves.random, i, stats::Mean(orders[i]));
}

std::string AccuracyText(const std::vector<std::vector<double>>& curve, std::size_t removed) {
  if (removed >= curve.size() || curve[removed].empty()) return "-";
  std::string text = render::Fixed(stats::Mean(curve[removed]), 4);
  if (const auto half = stats::IntervalHalfWidth(curve[removed])) {
    text += "±" + render::Fixed(*half, 4);
  }
  return text;
}

std::string RemovalTable(const Curves& curves, bool one_seed, const render::Style& style) {
  std::vector<render::Column> columns = {{"removed", Align::kRight}};
  if (one_seed) columns.push_back({"greedily"});
  for (const char* name : {"greedy", "random", "lowest", "highest"})
    columns.push_back({name, Align::kRight});
  render::Table table(columns);
  for (std::size_t removed = 0; removed < curves.greedy.size(); ++removed) {
    std::vector<std::string> cells = {Concat(removed)};
    if (one_seed) cells.push_back(curves.removed[removed]);
    cells.push_back(AccuracyText(curves.greedy, removed));
    cells.push_back(AccuracyText(curves.random, removed));
    const bool has_range = removed < curves.range.size();
    cells.push_back(has_range ? render::Fixed(curves.range[removed].first, 4) : "-");
    cells.push_back(has_range ? render::Fixed(curves.range[removed].second, 4) : "-");
    table.AddRow(cells);
  }
  return table.Render(style);
}

render::Series SeriesOf(const std::string& label, const std::vector<std::vector<double>>& curve) {
  render::Series series;
  series.label = label;
  for (std::size_t removed = 0; removed < curve.size(); ++removed) {
    if (curve[removed].empty()) break;
    series.points.emplace_back(static_cast<double>(removed), stats::Mean(curve[removed]));
  }
  return series;
}

std::string RemovalText(const Group& group, const render::Style& style) {
  Curves curves;
  for (const v1::AnalysisRow* row : group.rows)
    AddCurves(ParseJson<Json>(row->result_json()), curves);
  const bool one_seed = group.rows.size() == 1;
  return render::LinePlot({SeriesOf("greedy", curves.greedy), SeriesOf("random", curves.random)},
                          {TitleOf(group, "accuracy as heads are removed"), "heads removed"},
                          style) +
         "\n" + RemovalTable(curves, one_seed, style);
}

// The accuracies of one group on one split, by seed.
struct OfSplit {
  std::string name;
  std::vector<stats::SeedResult> accuracies;
  std::vector<double> chances;
};

void AddSplits(const v1::AnalysisRow& row, std::vector<OfSplit>& splits) {
  for (const results::SplitScore& score : results::SplitScoresOf(row)) {
    auto found = std::find_if(splits.begin(), splits.end(),
                              [&](const OfSplit& one) { return one.name == score.name; });
    if (found == splits.end()) found = splits.insert(found, {score.name, {}, {}});
    found->chances.push_back(score.chance);
    found->accuracies.push_back({stats::SeedResult::State::kDone, score.accuracy()});
  }
}

void AddSplitRows(const Group& group, render::Table& table) {
  std::vector<OfSplit> splits;
  for (const v1::AnalysisRow* row : group.rows) AddSplits(*row, splits);
  for (const OfSplit& split : splits) {
    stats::SeedSummary summary = stats::Summarize(split.accuracies);
    results::ClipShare(summary);
    std::vector<std::string> values = group.cell->shown;
    values.insert(values.end(),
                  {split.name, render::Fixed(summary.mean, 4), IntervalText(summary, 4),
                   render::Fixed(stats::Mean(split.chances), 4),
                   Concat(split.accuracies.size(), "/", group.cell->jobs.size())});
    const bool complete = split.accuracies.size() == group.cell->jobs.size();
    table.AddRow(values, complete ? "" : "33");
  }
}

// "split_accuracy", or "split_accuracy: first 100 examples".
std::string VariantTitle(const results::Variant& variant) {
  const std::string parameters = results::Describe(variant);
  return parameters.empty() ? variant.name : Concat(variant.name, ": ", parameters);
}

// The groups of one analysis, each drawn by `draw`. A result that cannot be read is reported in
// place of its drawing.
template <typename Draw>
std::string DrawGroups(const results::CellTable& cells, const std::vector<v1::AnalysisRow>& rows,
                       const std::string& name, const Draw& draw) {
  std::string text;
  for (const Group& group : GroupsOf(cells, rows, name)) {
    if (!text.empty()) text += "\n";
    try {
      text += draw(group);
    } catch (const Json::exception& error) {
      text += render::Escape(Concat(TitleOf(group, "result cannot be read"), ": ", error.what())) +
              "\n";
    }
  }
  return text;
}

std::string VariantText(const results::Variant& variant, const render::Table& table, bool first,
                        const render::Style& style) {
  const std::string title = render::Wrap(render::Escape(VariantTitle(variant)), style.width);
  return Concat(first ? "" : "\n", render::Paint(style, "1", title), "\n", table.Render(style));
}

std::string IntactText(const Group& group) {
  std::vector<double> accuracies;
  for (const v1::AnalysisRow* row : group.rows) {
    if (row->has_intact_correct() && row->total() > 0) {
      accuracies.push_back(static_cast<double>(row->intact_correct()) /
                           static_cast<double>(row->total()));
    }
  }
  return accuracies.empty() ? "-" : render::Fixed(stats::Mean(accuracies), 4);
}

// "1000", or "980-1000" if the seeds were scored on different numbers of examples.
std::string TotalText(const Group& group) {
  std::vector<std::int64_t> totals;
  for (const v1::AnalysisRow* row : group.rows) {
    if (row->has_total()) totals.push_back(row->total());
  }
  if (totals.empty()) return "-";
  const auto [low, high] = std::minmax_element(totals.begin(), totals.end());
  return *low == *high ? Concat(*low) : Concat(*low, "-", *high);
}

}  // namespace

std::string AnalysisTableText(const results::CellTable& cells,
                              const std::vector<v1::AnalysisRow>& rows,
                              const render::Style& style) {
  std::vector<render::Column> columns = LeadingColumns(cells);
  for (const char* name : {"examples", "intact", "seeds"}) columns.push_back({name, Align::kRight});
  std::map<results::Variant, render::Table> tables;
  for (const Group& group : GroupsOf(cells, rows, "")) {
    std::vector<std::string> values = group.cell->shown;
    values.insert(values.end(), {TotalText(group), IntactText(group),
                                 Concat(group.rows.size(), "/", group.cell->jobs.size())});
    const bool complete = group.rows.size() == group.cell->jobs.size();
    tables.try_emplace(group.variant, columns).first->second.AddRow(values, complete ? "" : "33");
  }
  std::string text;
  for (const auto& [variant, table] : tables) {
    text += VariantText(variant, table, text.empty(), style);
  }
  return text;
}

std::string SplitAccuracyText(const results::CellTable& cells,
                              const std::vector<v1::AnalysisRow>& rows,
                              const render::Style& style) {
  std::vector<render::Column> columns = LeadingColumns(cells);
  columns.push_back({"split"});
  for (const char* name : {"accuracy", "95% interval", "chance", "seeds"}) {
    columns.push_back({name, Align::kRight});
  }
  std::map<results::Variant, render::Table> tables;
  for (const Group& group : GroupsOf(cells, rows, "split_accuracy")) {
    AddSplitRows(group, tables.try_emplace(group.variant, columns).first->second);
  }
  std::string text;
  for (const auto& [variant, table] : tables) {
    text += VariantText(variant, table, text.empty(), style);
  }
  return text;
}

std::string LayerAblationText(const results::CellTable& cells,
                              const std::vector<v1::AnalysisRow>& rows,
                              const render::Style& style) {
  std::string text = DrawGroups(cells, rows, "layer_ablation",
                                [&](const Group& group) { return LayerTable(group, style); });
  if (text.empty()) return text;
  return text +
         "± the 95% interval over seeds (of one seed: over its examples)\n"
         "?: within 3 standard errors in every seed, so it may be chance\n";
}

std::string CumulativeAblationText(const results::CellTable& cells,
                                   const std::vector<v1::AnalysisRow>& rows,
                                   const render::Style& style) {
  std::string text = DrawGroups(cells, rows, "cumulative_ablation",
                                [&](const Group& group) { return RemovalText(group, style); });
  if (text.empty()) return text;
  return text + "random: the mean of the random orders; lowest and highest: of any of them\n";
}

}  // namespace pelab::client
