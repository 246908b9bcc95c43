#include "server/store/analyses.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "core/base/json_text.h"
#include "core/event/check.h"
#include "core/stats/deposit.h"

namespace pelab::store {
namespace {

void AddMissing(const std::vector<Analysis>& from, std::vector<Analysis>& to) {
  for (const Analysis& analysis : from) {
    if (std::find(to.begin(), to.end(), analysis) == to.end()) to.push_back(analysis);
  }
}

void StoreEntries(Database& db, std::int64_t analysis_id, const v1::HeadAblation& ablation) {
  for (int i = 0; i < ablation.correct_size(); ++i) {
    const int layer = i / ablation.heads();
    const int head = i % ablation.heads();
    if (!event::HasEntry(ablation, i)) {
      db.Execute("INSERT INTO head_ablation (analysis_id, layer, head) VALUES (?, ?, ?)",
                 analysis_id, layer, head);
      continue;
    }
    const stats::PairedDrop drop =
        stats::Drop({ablation.lost(i), ablation.gained(i)}, ablation.total());
    db.Execute(
        "INSERT INTO head_ablation (analysis_id, layer, head, correct, lost, gained, "
        "drop_standard_error, nll, nll_standard_error) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        analysis_id, layer, head, ablation.correct(i), ablation.lost(i), ablation.gained(i),
        drop.standard_error, ablation.nll(i), ablation.nll_standard_error(i));
  }
}

void StoreIndices(Database& db, std::int64_t analysis_id, const v1::HeadAblation& ablation) {
  stats::AblationMatrix counts{.layers = ablation.layers(),
                               .heads = ablation.heads(),
                               .total = ablation.total(),
                               .intact_correct = ablation.intact_correct(),
                               .chance = ablation.chance()};
  for (int i = 0; i < ablation.correct_size(); ++i) {
    std::optional<stats::PairedCounts>& pair = counts.entries.emplace_back();
    if (event::HasEntry(ablation, i)) {
      pair = stats::PairedCounts{ablation.lost(i), ablation.gained(i)};
    }
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
  const auto& bytes_of = batch.options.artifact_bytes;
  if (weights && bytes_of && !bytes_of(weights->sha256)) return std::nullopt;
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

bool StoreMatrix(const Batch& batch, const AttemptRow& attempt, const v1::HeadAblation& ablation,
                 std::int64_t now) {
  const int stored = batch.db.Execute(
      "INSERT OR IGNORE INTO analyses (job_id, name, version, parameters_json, attempt_id, layers, "
      "heads, intact_correct, total, seconds, created_at, intact_nll, chance) "
      "VALUES (?, 'head_ablation', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
      attempt.job_id, ablation.version(), ablation.parameters_json(), attempt.attempt_id,
      ablation.layers(), ablation.heads(), ablation.intact_correct(), ablation.total(),
      ablation.seconds(), now, ablation.intact_nll(), ablation.chance());
  if (stored == 0) return false;
  const std::int64_t analysis_id = batch.db.LastId();
  StoreEntries(batch.db, analysis_id, ablation);
  StoreIndices(batch.db, analysis_id, ablation);
  return true;
}

bool StoreResult(const Batch& batch, const AttemptRow& attempt, const v1::AnalysisResult& result,
                 std::int64_t now) {
  std::optional<double> seconds;
  if (result.seconds() > 0) seconds = result.seconds();
  const int stored = batch.db.Execute(
      "INSERT OR IGNORE INTO analyses (job_id, name, version, parameters_json, attempt_id, "
      "result_json, seconds, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
      attempt.job_id, result.name(), result.version(), result.parameters_json(), attempt.attempt_id,
      result.result_json(), seconds, now);
  return stored != 0;
}

}  // namespace pelab::store
