#include "core/results/deposits.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>

#include "core/base/json_text.h"
#include "core/base/strings.h"

namespace pelab::results {
namespace {

using render::Json;
using LayerOrAll = std::optional<int>;  // nullopt sorts first
using State = stats::SeedResult::State;

struct IndexColumn {
  const char* name;
  bool (v1::DepositRow::*has)() const;
  double (v1::DepositRow::*get)() const;
  stats::SeedSummary DepositGroup::*summary;
};
constexpr IndexColumn kIndexColumns[] = {
    {"max_drop", &v1::DepositRow::has_max_drop, &v1::DepositRow::max_drop, &DepositGroup::max_drop},
    {"top_share", &v1::DepositRow::has_top_share, &v1::DepositRow::top_share,
     &DepositGroup::top_share},
    {"top_ratio", &v1::DepositRow::has_top_ratio, &v1::DepositRow::top_ratio,
     &DepositGroup::top_ratio},
    {"gini", &v1::DepositRow::has_gini, &v1::DepositRow::gini, &DepositGroup::gini},
    {"effective_heads", &v1::DepositRow::has_effective_heads, &v1::DepositRow::effective_heads,
     &DepositGroup::effective_heads},
};

// Finds rows by (job, variant, layer).
class DepositRows {
 public:
  DepositRows(const std::vector<v1::DepositRow>& rows, const Variants& variants) {
    for (const v1::DepositRow& row : rows) {
      const auto variant = variants.find(row.analysis_id());
      if (variant == variants.end()) continue;
      const LayerOrAll layer = row.has_layer() ? LayerOrAll(row.layer()) : std::nullopt;
      by_job_[row.job_id()][variant->second][layer] = &row;
    }
  }
  const v1::DepositRow* Find(std::int64_t job, const Variant& variant, LayerOrAll layer) const {
    const auto of_job = by_job_.find(job);
    if (of_job == by_job_.end()) return nullptr;
    const auto of_variant = of_job->second.find(variant);
    if (of_variant == of_job->second.end()) return nullptr;
    const auto row = of_variant->second.find(layer);
    return row == of_variant->second.end() ? nullptr : row->second;
  }
  // The variants and layers that the seeds of a group have.
  std::map<Variant, std::set<LayerOrAll>> Of(const Cell& cell) const {
    std::map<Variant, std::set<LayerOrAll>> found;
    for (const v1::JobRow& job : cell.jobs) {
      const auto of_job = by_job_.find(job.job_id());
      if (of_job == by_job_.end()) continue;
      for (const auto& [variant, layers] : of_job->second) {
        for (const auto& [layer, row] : layers) found[variant].insert(layer);
      }
    }
    return found;
  }

 private:
  std::map<std::int64_t, std::map<Variant, std::map<LayerOrAll, const v1::DepositRow*>>> by_job_;
};

stats::SeedSummary SeedsOf(const Cell& cell, const std::vector<const v1::DepositRow*>& rows) {
  std::vector<stats::SeedResult> results;
  for (std::size_t i = 0; i < cell.jobs.size(); ++i) {
    if (rows[i] != nullptr) {
      results.push_back({State::kDone, rows[i]->max_drop()});
      continue;
    }
    const v1::JobState state = cell.jobs[i].state();
    results.push_back({state == v1::JOB_STATE_FAILED      ? State::kFailed
                       : state == v1::JOB_STATE_CANCELLED ? State::kCancelled
                                                          : State::kMissing,
                       0});
  }
  return stats::Summarize(results);
}

void CountDeposits(const v1::DepositRow& row, DepositGroup& group) {
  const bool judged = group.layer ? row.has_deposit() : row.has_deposits();
  if (!judged) return;
  ++group.judged;
  if (group.layer ? row.deposit() : row.deposits() > 0) ++group.deposit_seeds;
}

void FindTop(const std::map<int, int>& places, DepositGroup& group) {
  for (const auto& [place, seeds] : places) {
    group.placed += seeds;
    if (seeds <= group.top_seeds) continue;
    group.top = place;
    group.top_seeds = seeds;
  }
}

DepositGroup Collect(const Cell& cell, const Variant& variant, LayerOrAll layer,
                     const DepositRows& rows) {
  DepositGroup group;
  group.cell = &cell;
  group.variant = variant;
  group.layer = layer;
  std::vector<const v1::DepositRow*> found;
  for (const v1::JobRow& job : cell.jobs) {
    found.push_back(rows.Find(job.job_id(), variant, layer));
  }
  group.seeds = SeedsOf(cell, found);
  std::map<int, int> places;
  for (const v1::DepositRow* row : found) {
    if (row == nullptr) continue;
    if (!row->has_max_drop()) ++group.undefined;
    CountDeposits(*row, group);
    if (row->has_top_layer()) ++places[layer ? row->top_head() : row->top_layer()];
  }
  FindTop(places, group);
  if (group.placed == 1 && !layer) {
    for (const v1::DepositRow* row : found) {
      if (row != nullptr && row->has_top_head()) group.top_head = row->top_head();
    }
  }
  for (const IndexColumn& index : kIndexColumns) {
    std::vector<stats::SeedResult> values;
    for (const v1::DepositRow* row : found) {
      if (row != nullptr && (row->*index.has)())
        values.push_back({State::kDone, (row->*index.get)()});
    }
    group.*index.summary = stats::Summarize(values);
  }
  return group;
}

Json SummaryJson(const stats::SeedSummary& summary) {
  return {{"n", summary.n},
          {"mean", render::OrNull(summary.mean)},
          {"sd", render::OrNull(summary.sd)},
          {"half_width", render::OrNull(summary.half_width)}};
}

Json AnalysisJson(const DepositGroup& group) {
  if (!group.variant) return nullptr;
  return {{"version", group.variant->version},
          {"parameters", ParseJsonOrNull<Json>(group.variant->parameters_json)}};
}

}  // namespace

std::vector<DepositGroup> DepositGroups(const CellTable& cells,
                                        const std::vector<v1::DepositRow>& rows,
                                        const Variants& variants, bool by_layer) {
  const DepositRows found(rows, variants);
  std::vector<DepositGroup> groups;
  for (const Cell& cell : cells.cells) {
    const auto of_cell = found.Of(cell);
    for (const auto& [variant, layers] : of_cell) {
      for (const LayerOrAll& layer : layers) {
        if (layer && !by_layer) continue;
        groups.push_back(Collect(cell, variant, layer, found));
      }
    }
    if (of_cell.empty()) {
      DepositGroup none;
      none.cell = &cell;
      none.seeds = SeedsOf(cell, std::vector<const v1::DepositRow*>(cell.jobs.size(), nullptr));
      groups.push_back(none);
    }
  }
  return groups;
}

render::Json ToJson(const CellTable& cells, const DepositGroup& group) {
  Json json;
  for (std::size_t i = 0; i < cells.columns.size(); ++i)
    json[cells.columns[i]] = group.cell->values[i];
  json["analysis"] = AnalysisJson(group);
  json["layer"] = group.layer ? Json(*group.layer) : Json(nullptr);
  json["n"] = group.seeds.n;
  json["undefined"] = group.undefined;
  json["missing"] = group.seeds.missing;
  json["failed"] = group.seeds.failed;
  json["complete"] = group.seeds.complete();
  for (const IndexColumn& index : kIndexColumns)
    json[index.name] = SummaryJson(group.*index.summary);
  json["deposit_seeds"] = group.deposit_seeds;
  json["judged"] = group.judged;
  json[group.layer ? "top_head" : "top_layer"] = group.top ? Json(*group.top) : Json(nullptr);
  json["top_seeds"] = group.top_seeds;
  json["placed"] = group.placed;
  json["cancelled"] = group.seeds.cancelled;
  json["job_ids"] = Json::array();
  for (const v1::JobRow& job : group.cell->jobs) json["job_ids"].push_back(job.job_id());
  return json;
}

std::vector<std::string> DepositGroupColumns(const CellTable& cells) {
  std::vector<std::string> columns = cells.columns;
  for (const char* name : {"analysis", "layer", "n", "undefined", "missing", "failed", "complete"})
    columns.emplace_back(name);
  for (const IndexColumn& index : kIndexColumns) {
    columns.push_back(Concat(index.name, "_mean"));
    columns.push_back(Concat(index.name, "_half_width"));
  }
  for (const char* name :
       {"deposit_seeds", "judged", "top_layer", "top_head", "top_seeds", "placed", "cancelled"})
    columns.emplace_back(name);
  return columns;
}

render::Json FlatJson(const CellTable& cells, const DepositGroup& group) {
  Json json = ToJson(cells, group);
  for (const IndexColumn& index : kIndexColumns) {
    const Json summary = json[index.name];
    json[Concat(index.name, "_mean")] = summary["mean"];
    json[Concat(index.name, "_half_width")] = summary["half_width"];
  }
  return json;
}

}  // namespace pelab::results
