#include "client/claims/sheet_cost.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <utility>

#include "client/claims/judged_sheet.h"
#include "client/claims/standing.h"
#include "client/source/connect.h"
#include "client/terminal/claim_tables.h"
#include "client/terminal/put.h"
#include "client/terminal/table.h"
#include "client/terminal/varying_columns.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/claims/cell_labels.h"
#include "core/claims/evidence.h"
#include "core/claims/evidence_json.h"
#include "core/render/text.h"
#include "core/results/cell_jobs.h"
#include "core/stats/e_value.h"

namespace pelab::client {
namespace {

using render::Column;
using render::Json;

constexpr Column::Align kRight = Column::Align::kRight;

// "80 jobs, 53m20s of slot time".
std::string JobsText(std::int64_t jobs, const std::optional<double>& seconds) {
  return Concat(render::Counted(jobs, "job"),
                seconds ? Concat(", ", render::FormatSeconds(*seconds), " of slot time")
                        : ", whose time is unknown");
}

// The fewest seeds that can decide every claim at once, if every seed agrees.
std::int64_t FewestSeeds(double rate) {
  std::int64_t seeds = 1;
  while (stats::LogEValue({seeds, seeds}) < std::log(2 / rate)) ++seeds;
  return seeds;
}

// The standing of a sheet that is registered with this hash.
absl::StatusOr<std::string> StandingOf(DataSource& source, const SheetFile& file) {
  PELAB_ASSIGN_OR_RETURN(const auto registered, FindRegistered(source, file.sha256));
  if (!registered) return std::string();
  const v1::SheetRow& row = registered->row();
  PELAB_ASSIGN_OR_RETURN(const auto claims,
                         source.SheetClaims(Concat(row.sheet_id()), /*last_round=*/true));
  const bool open =
      claims.empty() || std::any_of(claims.begin(), claims.end(),
                                    [](const auto& claim) { return claim.standing() == "open"; });
  return Concat("registered as sheet ", row.sheet_id(), ": ",
                render::Counted(row.ended_rounds(), "round"), ", ",
                StandingText(claims, file.bound.claims.size()),
                open ? "" : "; pelab settle has nothing left to run");
}

}  // namespace

SheetCost CostOf(const claims::BoundSheet& sheet, const claims::StoredRows& rows) {
  std::map<std::size_t, CellCost> cells;
  for (const claims::BoundClaim& claim : sheet.claims) {
    for (const std::size_t at : claims::CellsOf(claim)) {
      cells[at].configuration = at;
      ++cells[at].claims;
    }
  }
  SheetCost cost{.fewest_seeds = FewestSeeds(sheet.sheet.false_discovery_rate)};
  const claims::Outcomes outcomes = claims::OutcomesOf(sheet, rows);
  double known = 0;
  std::size_t with_times = 0;
  for (auto& [at, cell] : cells) {
    double seconds = 0;
    for (std::int64_t seed = sheet.sheet.first_seed; seed < claims::kFirstPilotSeed; ++seed) {
      const claims::Outcome& outcome = outcomes.Of(at, seed);
      if (outcome.state == claims::Outcome::State::kOpen) continue;
      ++cell.stored;
      seconds += outcome.slot_seconds;
    }
    if (cell.stored > 0) {
      cell.seconds_per_seed = seconds / static_cast<double>(cell.stored);
      known += *cell.seconds_per_seed;
      ++with_times;
    }
    cost.cells.push_back(cell);
  }
  cost.without_times = cells.size() - with_times;
  if (with_times > 0) {
    cost.seconds_per_seed =
        known * static_cast<double>(cells.size()) / static_cast<double>(with_times);
  }
  return cost;
}

std::string CostText(const claims::BoundSheet& sheet, const SheetCost& cost, double budget,
                     const render::Style& style) {
  const results::JobList jobs = results::JobsOf(sheet.configurations);
  const VaryingColumns varying(jobs, /*shown=*/"protocol");
  std::vector<Column> columns = {
      {"pe", Column::Align::kLeft, true}, {"task", Column::Align::kLeft, true}, {"protocol"}};
  varying.AddTo(columns);
  columns.insert(columns.end(),
                 {{"claims", kRight}, {"stored seeds", kRight}, {"a seed takes", kRight}});
  render::Table table(columns, render::Table::kAllLines);  // cut settings would look alike
  for (const CellCost& cell : cost.cells) {
    const experiment::Cell& of = sheet.configurations[cell.configuration];
    std::vector<std::string> row = {of.pe_label, of.task_label, of.protocol_label};
    varying.AddCells(cell.configuration, row);
    row.insert(row.end(),
               {Concat(cell.claims), Concat(cell.stored),
                cell.seconds_per_seed ? render::FormatSeconds(*cell.seconds_per_seed) : "-"});
    table.AddRow(std::move(row));
  }
  const auto cells = static_cast<std::int64_t>(cost.cells.size());
  const auto line = [&](const std::string& what, std::int64_t seeds) {
    const double times = static_cast<double>(seeds);
    return Concat(what, ": ",
                  JobsText(cells * seeds, cost.seconds_per_seed
                                              ? std::optional(*cost.seconds_per_seed * times)
                                              : std::nullopt),
                  "\n");
  };
  const std::int64_t most = sheet.sheet.max_seeds;
  std::string text =
      Concat(table.Render(style), "sheet ", sheet.sheet.name, ": ",
             render::Counted(static_cast<std::int64_t>(sheet.claims.size()), "claim"), " about ",
             cells, " of the ", sheet.configurations.size(), " cells of sweep ",
             render::Escape(sheet.sweep.name()), "\n", line("one seed of each", 1));
  if (cost.fewest_seeds <= most) {
    text += line(Concat("the ", cost.fewest_seeds,
                        " seeds with which claims can be decided if "
                        "all seeds of all claims agree"),
                 cost.fewest_seeds);
  } else {
    text += Concat("max_seeds is ", most, ", but no claim can be decided with fewer than ",
                   cost.fewest_seeds, " seeds\n");
  }
  text += line(Concat("all ", most, " seeds of max_seeds"), most);
  if (cost.seconds_per_seed && cost.without_times > 0) {
    text += Concat(cost.without_times,
                   cost.without_times == 1 ? " cell has no stored time and is"
                                           : " cells have no stored times and are",
                   " taken as the mean of the others\n");
  }
  if (budget > 0 && cost.seconds_per_seed.value_or(0) > 0) {
    const double seeds = std::min(budget / *cost.seconds_per_seed, static_cast<double>(most));
    text += Concat("--budget ", render::FormatSeconds(budget), " is enough for ",
                   render::Counted(static_cast<std::int64_t>(seeds), "seed"), " of each\n");
  }
  return Concat(text, cost.standing.empty() ? "" : Concat(cost.standing, "\n"),
                "nothing was run\n");
}

render::Json CostJson(const claims::BoundSheet& sheet, const SheetCost& cost) {
  const claims::CellLabels labels(sheet.configurations);
  Json cells = Json::array();
  for (const CellCost& cell : cost.cells) {
    const experiment::Cell& of = sheet.configurations[cell.configuration];
    Json json = claims::CellJson(of, labels.SettingsOf(cell.configuration));
    json.update({{"claims", cell.claims},
                 {"stored", cell.stored},
                 {"seconds_per_seed", render::OrNull(cell.seconds_per_seed)}});
    cells.push_back(std::move(json));
  }
  Json ids = Json::array();
  for (const claims::BoundClaim& claim : sheet.claims) ids.push_back(claim.id);
  return {{"sheet", sheet.sheet.name},
          {"claims", ids},
          {"max_seeds", sheet.sheet.max_seeds},
          {"fewest_seeds", cost.fewest_seeds},
          {"seconds_per_seed", render::OrNull(cost.seconds_per_seed)},
          {"standing", cost.standing.empty() ? Json(nullptr) : Json(cost.standing)},
          {"cells", cells}};
}

absl::StatusOr<v1::JobFilter> FilterOf(DataSource& source, const std::string& sweep_option,
                                       const claims::BoundSheet& sheet) {
  v1::JobFilter filter;
  filter.set_sweep(sweep_option);
  if (!sweep_option.empty()) return filter;
  PELAB_ASSIGN_OR_RETURN(const auto sweeps, source.Sweeps());
  for (const v1::Sweep& sweep : sweeps) {
    if (sweep.name() == sheet.sweep.name()) filter.set_sweep(sweep.name());
  }
  return filter;
}

absl::StatusOr<int> CheckSheet(const Context& context, const SheetFile& file,
                               const CheckOptions& options) {
  PELAB_RETURN_IF_ERROR(claims::CheckCanBeSettled(file.bound));
  claims::StoredRows rows;
  SheetCost cost = CostOf(file.bound, rows);
  // A sheet can be checked before its database exists: then no time is known.
  const GlobalOptions& global = context.options;
  std::error_code ignored;
  if (!global.server.empty() || std::filesystem::exists(global.database, ignored)) {
    PELAB_ASSIGN_OR_RETURN(const auto source, FindSource(global));
    PELAB_ASSIGN_OR_RETURN(const v1::JobFilter filter,
                           FilterOf(*source, options.sweep, file.bound));
    PELAB_ASSIGN_OR_RETURN(rows.jobs, source->Jobs(filter));
    cost = CostOf(file.bound, rows);
    if (!cost.seconds_per_seed && options.sweep.empty() && !filter.sweep().empty()) {
      // A sweep of that name has none of the cells. Other sweeps may have them.
      PELAB_ASSIGN_OR_RETURN(rows.jobs, source->Jobs({}));
      cost = CostOf(file.bound, rows);
    }
    PELAB_ASSIGN_OR_RETURN(cost.standing, StandingOf(*source, file));
  }
  return Put(context,
             {.json = [&] { return CostJson(file.bound, cost); },
              .text = [&] { return CostText(file.bound, cost, options.budget, context.style); },
              .rows = "cells"});
}

}  // namespace pelab::client
