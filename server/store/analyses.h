// Analyses in the database: which ones a job needs, what they require, and how results are stored.
// Internal to the store. Every function here may throw SQLite::Exception.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/store/batch.h"

namespace pelab::store {

// JSON in the form of this database: [{"name":…,"version":…,"parameters_json":"…"}].
std::string AnalysesToJson(const std::vector<Analysis>& analyses);
std::vector<Analysis> AnalysesFromJson(const std::string& json);
// Names and versions as in Requirement: each once, sorted.
std::vector<std::pair<std::string, int>> VersionsOf(const std::vector<Analysis>& analyses);

// The given analyses that are not stored for the job.
std::vector<Analysis> MissingAnalyses(Database& db, std::int64_t job_id,
                                      const std::vector<Analysis>& analyses);
// The analyses that live sweeps or requests want for the job and that are not stored.
std::vector<Analysis> NeededAnalyses(Database& db, std::int64_t job_id);

// The weights that the job's training left, according to the database alone.
std::optional<KeptWeights> StoredWeights(Database& db, std::int64_t job_id);
// The same, or nullopt if their file is missing.
std::optional<KeptWeights> FindWeights(const Batch& batch, std::int64_t job_id);

// Queues a succeeded job for the analyses that it lacks; nullopt if the job has another state. If
// an attempt of the job is still open (although it was told to stop), adds it to `superseded`.
std::optional<ReadyJob> QueueForAnalyses(Batch& batch, std::int64_t job_id, std::int64_t now,
                                         std::vector<std::int64_t>& superseded);

// Stores a result and returns whether it is new. If a result with the same name, parameters and
// version is stored already, that result stays: what was acknowledged is never replaced. Storing a
// matrix also stores its deposit indices (core/stats/deposit.h).
bool StoreMatrix(const Batch& batch, const AttemptRow& attempt, const v1::HeadAblation& ablation,
                 std::int64_t now);
bool StoreResult(const Batch& batch, const AttemptRow& attempt, const v1::AnalysisResult& result,
                 std::int64_t now);

}  // namespace pelab::store
