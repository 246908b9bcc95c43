#include "server/store/analyses.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "core/base/json_text.h"
#include "core/stats/deposit.h"
#include "server/limits.h"
#include "server/store/shares.h"

namespace pelab::store {
namespace {

void AddMissing(const std::vector<Analysis>& from, std::vector<Analysis>& to) {
  for (const Analysis& analysis : from) {
    if (std::find(to.begin(), to.end(), analysis) == to.end()) to.push_back(analysis);
  }
}

bool IsLoss(double nll) { return std::isfinite(nll) && nll >= 0; }

// Every example is either right or wrong, both intact and ablated, so the counts must be
// consistent.
bool IsPossible(const AblatedHead& head, const HeadAblation& matrix) {
  return IsShare(head.correct, matrix.total) && IsShare(head.lost, matrix.intact_correct) &&
         IsShare(head.gained, matrix.total - matrix.intact_correct) &&
         matrix.intact_correct - head.correct == head.lost - head.gained && IsLoss(head.nll) &&
         IsLoss(head.nll_standard_error);
}

void StoreEntries(Database& db, std::int64_t analysis_id, const HeadAblation& matrix) {
  for (std::size_t i = 0; i < matrix.entries.size(); ++i) {
    const int layer = static_cast<int>(i) / matrix.heads;
    const int head = static_cast<int>(i) % matrix.heads;
    const std::optional<AblatedHead>& entry = matrix.entries[i];
    if (!entry) {
      db.Execute("INSERT INTO head_ablation (analysis_id, layer, head) VALUES (?, ?, ?)",
                 analysis_id, layer, head);
      continue;
    }
    const stats::PairedDrop drop = stats::Drop({entry->lost, entry->gained}, matrix.total);
    db.Execute(
        "INSERT INTO head_ablation (analysis_id, layer, head, correct, lost, gained, "
        "drop_standard_error, nll, nll_standard_error) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        analysis_id, layer, head, entry->correct, entry->lost, entry->gained, drop.standard_error,
        entry->nll, entry->nll_standard_error);
  }
}

void StoreIndices(Database& db, std::int64_t analysis_id, const HeadAblation& matrix) {
  stats::AblationMatrix counts{.layers = matrix.layers,
                               .heads = matrix.heads,
                               .total = matrix.total,
                               .intact_correct = matrix.intact_correct,
                               .chance = matrix.chance};
  for (const std::optional<AblatedHead>& entry : matrix.entries) {
    std::optional<stats::PairedCounts>& pair = counts.entries.emplace_back();
    if (entry) pair = stats::PairedCounts{entry->lost, entry->gained};
  }
  for (const stats::DepositIndices& row : stats::IndicesOf(counts)) {
    db.Execute(
        "INSERT INTO deposit_indices (analysis_id, layer, max_drop, top_share, top_ratio, gini, "
        "effective_heads, top_layer, top_head, deposit, deposits) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        analysis_id, row.layer.value_or(-1), row.max_drop, row.top_share, row.top_ratio, row.gini,
        row.effective_heads, row.top_layer, row.top_head, row.deposit, row.deposits);
  }
}

}  // namespace

std::string AnalysesToJson(const std::vector<Analysis>& analyses) {
  if (analyses.empty()) return "[]";
  nlohmann::json array = nlohmann::json::array();
  for (const Analysis& analysis : analyses) {
    array.push_back({{"name", analysis.name},
                     {"version", analysis.version},
                     {"parameters_json", analysis.parameters_json}});
  }
  return array.dump();
}

std::vector<Analysis> AnalysesFromJson(const std::string& json) {
  std::vector<Analysis> analyses;
  if (json == "[]") return analyses;
  const auto array = ParseJson(json);
  if (!array.is_array()) return analyses;
  for (const auto& item : array) {
    if (!item.is_object()) continue;
    analyses.push_back({.name = item.value("name", ""),
                        .version = item.value("version", 0),
                        .parameters_json = item.value("parameters_json", "{}")});
  }
  return analyses;
}

std::vector<std::pair<std::string, int>> VersionsOf(const std::vector<Analysis>& analyses) {
  std::vector<std::pair<std::string, int>> versions;
  versions.reserve(analyses.size());
  for (const Analysis& analysis : analyses) versions.emplace_back(analysis.name, analysis.version);
  std::sort(versions.begin(), versions.end());
  versions.erase(std::unique(versions.begin(), versions.end()), versions.end());
  return versions;
}

std::vector<Analysis> MissingAnalyses(Database& db, std::int64_t job_id,
                                      const std::vector<Analysis>& analyses) {
  std::vector<Analysis> missing;
  for (const Analysis& analysis : analyses) {
    Query stored = db.Run(
        "SELECT 1 FROM analyses WHERE job_id = ? AND name = ? AND parameters_json = ? "
        "AND version = ?",
        job_id, analysis.name, analysis.parameters_json, analysis.version);
    if (!stored.Step()) missing.push_back(analysis);
  }
  return missing;
}

std::vector<Analysis> NeededAnalyses(Database& db, std::int64_t job_id) {
  std::vector<Analysis> wanted;
  {
    Query sweeps = db.Run(
        "SELECT s.analyses_json FROM sweep_jobs AS c JOIN sweeps AS s USING (sweep_id) "
        "WHERE c.job_id = ? AND c.claimed = 1 AND s.state IN ('expanding', 'active')",
        job_id);
    while (sweeps.Step()) AddMissing(AnalysesFromJson(sweeps.Text(0)), wanted);
  }
  Query requests = db.Run(
      "SELECT name, version, parameters_json FROM analysis_requests WHERE job_id = ?", job_id);
  while (requests.Step()) {
    AddMissing({{requests.Text(0), static_cast<int>(requests.Int(1)), requests.Text(2)}}, wanted);
  }
  return MissingAnalyses(db, job_id, wanted);
}

std::optional<KeptWeights> StoredWeights(Database& db, std::int64_t job_id) {
  Query row = db.Run(
      "SELECT f.sha256, f.bytes FROM artifacts AS f JOIN attempts AS a USING (attempt_id) "
      "WHERE a.job_id = ? AND a.outcome = 'succeeded' AND f.name = ? "
      "ORDER BY a.number DESC LIMIT 1",
      job_id, kWeightsName);
  if (!row.Step()) return std::nullopt;
  return KeptWeights{row.Text(0), static_cast<std::uint64_t>(row.Int(1))};
}

std::optional<KeptWeights> FindWeights(const Batch& batch, std::int64_t job_id) {
  std::optional<KeptWeights> weights = StoredWeights(batch.db, job_id);
  const auto& has = batch.options.has_artifact;
  if (weights && has && !has(weights->sha256)) return std::nullopt;
  return weights;
}

std::optional<ReadyJob> QueueForAnalyses(Batch& batch, std::int64_t job_id, std::int64_t now,
                                         std::vector<std::int64_t>& superseded) {
  const std::optional<std::int64_t> open = OpenAttemptOf(batch.db, job_id);
  const auto change =
      Move(batch, job_id, {.event = state::Event::kAnalyze, .error = "", .now = now});
  if (!change) return std::nullopt;
  if (open) superseded.push_back(*open);
  return change->ready;
}

std::string WhatIsWrong(const AnalysisResult& result) {
  if (result.name.empty()) return "its analysis has no name";
  if (!IsJson(result.parameters_json) || !IsJson(result.result_json)) {
    return absl::StrCat("its analysis ", result.name.substr(0, 80),
                        " has parameters or a result that are not JSON");
  }
  return "";
}

std::string WhatIsWrong(const HeadAblation& matrix) {
  if (!IsJson(matrix.parameters_json)) {
    return "its head ablation has parameters that are not JSON";
  }
  if (matrix.layers < 1 || matrix.heads < 1 || matrix.layers > limits::kLayersOrHeads ||
      matrix.heads > limits::kLayersOrHeads ||
      matrix.entries.size() != static_cast<std::size_t>(matrix.layers) * matrix.heads) {
    return absl::StrCat("its head ablation has ", matrix.entries.size(), " whole entries for ",
                        matrix.layers, " layers of ", matrix.heads,
                        " heads: counts, losses and their errors must all be there");
  }
  if (matrix.total < 1 || !IsShare(matrix.intact_correct, matrix.total)) {
    return "its head ablation's intact count is more than its total";
  }
  if (!IsLoss(matrix.intact_nll) || !(matrix.chance > 0 && matrix.chance <= 1)) {
    return absl::StrCat("its head ablation has an intact loss of ", matrix.intact_nll,
                        " and a chance of ", matrix.chance,
                        "; allowed: from 0 on, and above 0 to 1");
  }
  for (std::size_t i = 0; i < matrix.entries.size(); ++i) {
    const std::optional<AblatedHead>& head = matrix.entries[i];
    if (!head || IsPossible(*head, matrix)) continue;
    return absl::StrCat("its head ablation cannot be: layer ", i / matrix.heads, " head ",
                        i % matrix.heads, " has ", head->correct, " correct, ", head->lost,
                        " lost and ", head->gained, " gained of ", matrix.intact_correct,
                        " intact and ", matrix.total, " in all, with a loss of ", head->nll, " +- ",
                        head->nll_standard_error);
  }
  return "";
}

void StoreMatrix(const Batch& batch, const AttemptRow& attempt, const HeadAblation& matrix,
                 std::int64_t now) {
  const int stored = batch.db.Execute(
      "INSERT OR IGNORE INTO analyses (job_id, name, version, parameters_json, attempt_id, layers, "
      "heads, intact_correct, total, seconds, created_at, intact_nll, chance) "
      "VALUES (?, 'head_ablation', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
      attempt.job_id, matrix.version, matrix.parameters_json, attempt.attempt_id, matrix.layers,
      matrix.heads, matrix.intact_correct, matrix.total, matrix.seconds, now, matrix.intact_nll,
      matrix.chance);
  if (stored == 0) return;
  const std::int64_t analysis_id = batch.db.LastId();
  StoreEntries(batch.db, analysis_id, matrix);
  StoreIndices(batch.db, analysis_id, matrix);
}

void StoreResult(const Batch& batch, const AttemptRow& attempt, const AnalysisResult& result,
                 std::int64_t now) {
  std::optional<double> seconds;
  if (result.seconds > 0) seconds = result.seconds;
  batch.db.Execute(
      "INSERT OR IGNORE INTO analyses (job_id, name, version, parameters_json, attempt_id, "
      "result_json, seconds, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
      attempt.job_id, result.name, result.version, result.parameters_json, attempt.attempt_id,
      result.result_json, seconds, now);
}

}  // namespace pelab::store
