// claims: judges a sheet of claims on stored results, and counts what its seeds cost.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "client/command/commands.h"
#include "client/options/sheet_file.h"
#include "client/source/connect.h"
#include "client/terminal/claim_tables.h"
#include "client/terminal/put.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/claims/metric.h"
#include "core/claims/outcomes.h"
#include "core/stats/e_value.h"

namespace pelab::client {
namespace {

struct ClaimsOptions {
  std::string file;
  std::string sweep;
  std::int64_t first_seed = 0;
};

// Selects the jobs of --sweep; without it, those of the stored sweep with the name of the sheet's
// sweep; if there is none, all jobs.
absl::StatusOr<v1::JobFilter> FilterOf(DataSource& source, const ClaimsOptions& options,
                                       const claims::BoundSheet& sheet) {
  v1::JobFilter filter;
  filter.set_sweep(options.sweep);
  if (!options.sweep.empty()) return filter;
  PELAB_ASSIGN_OR_RETURN(const auto sweeps, source.Sweeps());
  for (const v1::Sweep& sweep : sweeps) {
    if (sweep.name() == sheet.sweep.name()) filter.set_sweep(sweep.name());
  }
  return filter;
}

absl::StatusOr<claims::StoredRows> LoadRows(DataSource& source, const v1::JobFilter& filter,
                                            const claims::Sheet& sheet) {
  claims::StoredRows rows;
  PELAB_ASSIGN_OR_RETURN(rows.jobs, source.Jobs(filter));
  for (const double accuracy : claims::EpochsToOf(sheet)) {
    PELAB_ASSIGN_OR_RETURN(rows.epochs_to[accuracy], source.EpochsTo(filter, accuracy));
  }
  v1::JobFilter failed = filter;
  failed.add_states(v1::JOB_STATE_FAILED);
  PELAB_ASSIGN_OR_RETURN(rows.attempts, source.Attempts(failed));
  const bool ablations =
      std::any_of(sheet.claims.begin(), sheet.claims.end(),
                  [](const claims::Claim& claim) { return claims::IsAboutAblation(claim.metric); });
  if (!ablations) return rows;
  PELAB_ASSIGN_OR_RETURN(rows.heads, source.HeadAblations(filter));
  PELAB_ASSIGN_OR_RETURN(rows.deposits, source.Deposits(filter));
  return rows;
}

absl::StatusOr<int> Show(Commands& commands, const ClaimsOptions& options) {
  const Context& context = *commands.context;
  PELAB_ASSIGN_OR_RETURN(const SheetFile file, LoadSheet(options.file, &commands.document_name));
  PELAB_ASSIGN_OR_RETURN(const auto source, FindSource(context.options));
  PELAB_ASSIGN_OR_RETURN(const v1::JobFilter filter, FilterOf(*source, options, file.bound));
  PELAB_ASSIGN_OR_RETURN(const auto rows, LoadRows(*source, filter, file.bound.sheet));
  const claims::Outcomes outcomes = claims::OutcomesOf(file.bound, rows);
  JudgedSheet judged{
      .sheet = &file.bound,
      .sha256 = file.sha256,
      .source = filter.sweep().empty() ? source->Description() : Concat("sweep ", filter.sweep())};
  for (const claims::BoundClaim& claim : file.bound.claims) {
    judged.evidence.push_back(claims::Weigh(file.bound, claim, outcomes, options.first_seed,
                                            options.first_seed + file.bound.sheet.max_seeds));
  }
  judged.judgements = claims::Judge(judged.evidence, file.bound.sheet.false_discovery_rate);
  return Put(context, {.json = [&] { return VerdictsJson(judged); },
                       .text = [&] { return VerdictsText(judged, context.style); },
                       .rows = "claims",
                       .columns = VerdictColumns(),
                       .csv = [&] { return VerdictRows(judged); }});
}

// The fewest seeds that can decide every claim at once, if every seed agrees.
std::int64_t FewestSeeds(double rate) {
  std::int64_t seeds = 1;
  while (stats::LogEValue({seeds, seeds}) < std::log(2 / rate)) ++seeds;
  return seeds;
}

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
    for (std::int64_t seed = 0; seed < claims::kFirstPilotSeed; ++seed) {
      const claims::Outcome& outcome = outcomes.Of(at, seed);
      if (outcome.state == claims::Outcome::State::kOpen) continue;
      ++cell.stored;
      seconds += outcome.wall_seconds;
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

absl::StatusOr<int> Check(Commands& commands, const ClaimsOptions& options) {
  const Context& context = *commands.context;
  PELAB_ASSIGN_OR_RETURN(const SheetFile file, LoadSheet(options.file, &commands.document_name));
  claims::StoredRows rows;
  // A sheet can be checked before anything exists: then no time is known.
  const GlobalOptions& global = context.options;
  std::error_code ignored;
  const bool named = !global.server.empty() || global.database_given;
  if (named || std::filesystem::exists(global.database, ignored)) {
    PELAB_ASSIGN_OR_RETURN(const auto source, FindSource(global));
    PELAB_ASSIGN_OR_RETURN(const v1::JobFilter filter, FilterOf(*source, options, file.bound));
    PELAB_ASSIGN_OR_RETURN(rows.jobs, source->Jobs(filter));
  }
  const SheetCost cost = CostOf(file.bound, rows);
  return Put(context, {.json = [&] { return CostJson(file.bound, cost); },
                       .text = [&] { return CostText(file.bound, cost, context.style); },
                       .rows = "cells"});
}

void AddSheetOptions(CLI::App* app, ClaimsOptions& options) {
  app->add_option("SHEET.yaml", options.file, "the claim sheet")->required();
  app->add_option("--sweep", options.sweep,
                  "number or name of the stored sweep [default: the one with the name of the "
                  "sheet's sweep, otherwise all jobs]");
}

}  // namespace

void AddClaims(Commands& commands) {
  CLI::App* claims = AddCommand(commands, "claims", "claims about results, and whether they hold",
                                "  pelab claims check table1.claims.yaml\n"
                                "  pelab claims show table1.claims.yaml\n"
                                "  pelab claims show table1.claims.yaml --output json");
  claims->require_subcommand(1);
  claims->fallthrough();
  auto options = std::make_shared<ClaimsOptions>();
  CLI::App* check = claims->add_subcommand(
      "check", "the cells that a sheet is about, and the jobs and the time that its seeds need");
  check->footer(
      "Nothing is run. The times are the means of stored jobs.\nExamples:\n"
      "  pelab claims check table1.claims.yaml\n"
      "  pelab claims check table1.claims.yaml --db table1.db --output json");
  AddSheetOptions(check, *options);
  check->callback([&commands, options] {
    commands.chosen = [&commands, options] { return Check(commands, *options); };
  });
  CLI::App* show = claims->add_subcommand("show", "verdicts on the results that are stored");
  show->footer(
      "Seeds count in the order of their numbers, up to the first one that is not complete.\n"
      "Examples:\n"
      "  pelab claims show table1.claims.yaml\n"
      "  pelab claims show table1.claims.yaml --first-seed 4 --output csv");
  AddSheetOptions(show, *options);
  show->add_option("--first-seed", options->first_seed,
                   "the first seed that counts; earlier ones are left out [default: 0]")
      ->check(CLI::Range(0, static_cast<int>(claims::kFirstPilotSeed) - 1));
  show->callback([&commands, options] {
    commands.chosen = [&commands, options] { return Show(commands, *options); };
  });
}

}  // namespace pelab::client
