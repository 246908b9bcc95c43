// Analyses in the database: which a job needs, what they need of it, and how results are kept.
// Internal to the store; everything here may throw SQLite::Exception.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/store/batch.h"

namespace pelab::store {

// [{"name":…,"version":…,"parameters_json":"…"}], the form in which this database keeps analyses.
std::string AnalysesToJson(const std::vector<Analysis>& analyses);
std::vector<Analysis> AnalysesFromJson(const std::string& json);
// As a Requirement names them.
std::vector<std::pair<std::string, int>> VersionsOf(const std::vector<Analysis>& analyses);

// Those of `analyses` that are not stored for the job.
std::vector<Analysis> MissingAnalyses(Database& db, std::int64_t job_id,
                                      const std::vector<Analysis>& analyses);
// Those that live sweeps or requests ask of the job and that are not stored.
std::vector<Analysis> NeededAnalyses(Database& db, std::int64_t job_id);

// The weights that the job's training left, by the database alone.
std::optional<KeptWeights> StoredWeights(Database& db, std::int64_t job_id);
// The same where their file is there too.
std::optional<KeptWeights> FindWeights(const Batch& batch, std::int64_t job_id);

// Queues a trained job for analyses that are asked for already; nullopt where it is not succeeded.
// An attempt whose stop is still awaited is superseded.
std::optional<ReadyJob> QueueForAnalyses(Batch& batch, std::int64_t job_id, std::int64_t now,
                                         std::vector<std::int64_t>& superseded);

// Empty, or what no honest trainer sends. Views look into its JSON.
std::string WhatIsWrong(const HeadAblation& matrix);
std::string WhatIsWrong(const AnalysisResult& result);

// The first of a kind stays: what was acknowledged is not replaced. A matrix brings its deposit
// indices (core/stats/deposit.h).
void StoreMatrix(const Batch& batch, const AttemptRow& attempt, const HeadAblation& matrix,
                 std::int64_t now);
void StoreResult(const Batch& batch, const AttemptRow& attempt, const AnalysisResult& result,
                 std::int64_t now);

}  // namespace pelab::store
