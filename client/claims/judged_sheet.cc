#include "client/claims/judged_sheet.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "client/source/connect.h"
#include "core/base/file.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/claims/outcomes.h"
#include "core/claims/stored_rows.h"
#include "core/rpc/sheet_document.h"

namespace pelab::client {
namespace {

claims::EValues Stored(const v1::SheetClaimRow& row) {
  return {.seeds = row.seeds(),
          .eligible = row.eligible(),
          .log_holds = row.log_e_holds(),
          .log_fails = row.log_e_fails()};
}

// The first seed, from `first_seed` on, that is complete for some claim.
std::optional<std::int64_t> FirstCompleteSeed(const claims::BoundSheet& sheet,
                                              const claims::Outcomes& outcomes,
                                              std::int64_t first_seed) {
  for (std::int64_t seed = first_seed; seed < claims::kFirstPilotSeed; ++seed) {
    for (const claims::BoundClaim& claim : sheet.claims) {
      if (!claims::Weigh(sheet, claim, outcomes, seed, seed + 1).seeds.empty()) return seed;
    }
  }
  return std::nullopt;
}

void AddCosts(const claims::StoredRows& rows, JudgedSheet& judged) {
  const claims::SlotTimes times(rows);
  for (const v1::JobRow& row : rows.jobs) {
    const std::optional<double> seconds = times.Of(row);
    if (!seconds) continue;
    judged.jobs += 1;
    judged.slot_seconds += *seconds;
  }
}

}  // namespace

absl::StatusOr<SheetFile> FindSheetFile(const GlobalOptions& options, const std::string& name,
                                        std::string* file_in_error) {
  std::error_code ignored;
  const bool has_source =
      !options.server.empty() || std::filesystem::exists(options.database, ignored);
  const bool is_file = std::filesystem::is_regular_file(name, ignored);
  if (is_file || (!has_source && std::filesystem::exists(name, ignored))) {
    return LoadSheet(name, file_in_error);
  }
  if (!has_source) {
    return absl::NotFoundError(Concat("no file ", name, ", and no database ", options.database,
                                      " in which a sheet of that name could be registered"));
  }
  PELAB_ASSIGN_OR_RETURN(const auto source, FindSource(options));
  PELAB_ASSIGN_OR_RETURN(const v1::Sheet sheet, RegisteredOrNoFile(*source, name));
  return SheetOf(sheet.row());
}

absl::StatusOr<JudgedSheet> JudgeFile(DataSource& source, SheetFile file,
                                      const v1::JobFilter& filter, std::int64_t first_seed) {
  PELAB_ASSIGN_OR_RETURN(const auto rows, claims::LoadRows(source, filter, file.bound.sheet));
  JudgedSheet judged{
      .sheet = std::move(file.bound),
      .sha256 = std::move(file.sha256),
      .source = filter.sweep().empty() ? source.Description() : Concat("sweep ", filter.sweep())};
  const claims::Outcomes outcomes = claims::OutcomesOf(judged.sheet, rows);
  first_seed = std::max(first_seed, judged.sheet.sheet.first_seed);
  const std::int64_t end = first_seed + judged.sheet.sheet.max_seeds;
  for (const claims::BoundClaim& claim : judged.sheet.claims) {
    judged.evidence.push_back(claims::Weigh(judged.sheet, claim, outcomes, first_seed, end));
  }
  judged.judgements =
      claims::Judge(claims::EValuesOf(judged.evidence), judged.sheet.sheet.false_discovery_rate);
  if (!HasSeeds(judged)) judged.later_seed = FirstCompleteSeed(judged.sheet, outcomes, first_seed);
  PELAB_ASSIGN_OR_RETURN(const auto namesake, FindRegistered(source, judged.sheet.sheet.name));
  if (namesake && namesake->row().sha256() != judged.sha256) judged.namesake = namesake->row();
  return judged;
}

bool HasSeeds(const JudgedSheet& judged) {
  return std::any_of(judged.evidence.begin(), judged.evidence.end(),
                     [](const claims::Evidence& one) { return !one.seeds.empty(); });
}

absl::StatusOr<JudgedSheet> JudgeRegistered(DataSource& source, const v1::Sheet& sheet) {
  const v1::SheetRow& row = sheet.row();
  PELAB_ASSIGN_OR_RETURN(claims::BoundSheet bound,
                         rpc::BindSheetDocument(row.document(), row.sweep_document()));
  JudgedSheet judged{.sheet = std::move(bound),
                     .sha256 = row.sha256(),
                     .source = Concat("sheet ", row.sheet_id()),
                     .registered = row};
  PELAB_ASSIGN_OR_RETURN(judged.claims,
                         source.SheetClaims(Concat(row.sheet_id()), /*last_round=*/true));
  const std::size_t count = judged.sheet.claims.size();
  if (!judged.claims.empty() && judged.claims.size() != count) {
    return absl::DataLossError(
        Concat("sheet ", row.sheet_id(), ": its rounds have other claims than its document"));
  }
  claims::StoredRows rows;
  if (row.has_sweep_id()) {
    PELAB_ASSIGN_OR_RETURN(rows, claims::LoadOwnRows(source, row.sweep_id(), judged.sheet.sheet));
  }
  AddCosts(rows, judged);
  const claims::Outcomes outcomes = claims::OutcomesOf(judged.sheet, rows);
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t seeds = judged.claims.empty() ? 0 : judged.claims[i].seeds();
    judged.evidence.push_back(claims::Weigh(judged.sheet, judged.sheet.claims[i], outcomes,
                                            row.first_seed(), row.first_seed() + seeds));
    if (judged.claims.empty()) continue;
    claims::EValues& e = judged.evidence.back().e;
    const claims::EValues stored = Stored(judged.claims[i]);
    if (e != stored) judged.changed.push_back(judged.sheet.claims[i].id);
    e = stored;
    judged.judgements.push_back(
        {.verdict =
             claims::ParseVerdict(judged.claims[i].verdict()).value_or(claims::Verdict::kUndecided),
         .log_threshold = judged.claims[i].log_threshold()});
  }
  if (judged.claims.empty()) {
    judged.judgements =
        claims::Judge(claims::EValuesOf(judged.evidence), judged.sheet.sheet.false_discovery_rate);
  }
  return judged;
}

absl::StatusOr<v1::Sheet> RegisteredOrNoFile(DataSource& source, const std::string& name) {
  auto sheet = source.Sheet(name);
  if (!absl::IsNotFound(sheet.status())) return sheet;
  std::error_code ignored;
  if (std::filesystem::is_directory(name, ignored)) return ReadFile(name, 0).status();
  return absl::NotFoundError(Concat("no file ", name, "; ", std::string(sheet.status().message())));
}

absl::StatusOr<std::optional<v1::Sheet>> FindRegistered(DataSource& source,
                                                        const std::string& name) {
  auto sheet = source.Sheet(name);
  if (sheet.ok()) return *std::move(sheet);
  // A coordinator of an older version has no sheets.
  if (absl::IsNotFound(sheet.status()) || absl::IsUnimplemented(sheet.status()))
    return std::nullopt;
  return sheet.status();
}

}  // namespace pelab::client
