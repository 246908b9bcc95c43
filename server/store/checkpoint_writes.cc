// Checkpoints, and finding out which files are needed.
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "server/store/batch.h"

namespace pelab::store {

std::string Batch::WhatIsWrongWithFile(const std::string& sha256, std::uint64_t bytes) const {
  if (!options.artifact_bytes) return "";
  const std::optional<std::uint64_t> stored = options.artifact_bytes(sha256);
  if (!stored) return absl::StrCat("no file with SHA-256 ", sha256, " is stored");
  if (*stored == bytes) return "";
  return absl::StrCat("\"bytes\" is ", bytes, "; the stored file has ", *stored);
}

void DropCheckpointBeyond(Batch& batch, std::int64_t job_id, int epoch) {
  Query dropped = batch.db.Run(
      "DELETE FROM checkpoints WHERE job_id = ? AND epoch > ? RETURNING sha256", job_id, epoch);
  while (dropped.Step()) batch.dropped_files.push_back(dropped.Text(0));
}

void StoreCheckpoint(Batch& batch, const AttemptRow& attempt, const v1::Checkpoint& checkpoint,
                     std::int64_t now) {
  // If the file has been removed since the upload, training continues without this checkpoint.
  if (!batch.WhatIsWrongWithFile(checkpoint.sha256(), checkpoint.bytes()).empty()) return;
  {
    Query before = batch.db.Run("SELECT sha256 FROM checkpoints WHERE job_id = ? AND sha256 <> ?",
                                attempt.job_id, checkpoint.sha256());
    if (before.Step()) batch.dropped_files.push_back(before.Text(0));
  }
  const int stored = batch.db.Execute(
      "INSERT OR REPLACE INTO checkpoints (job_id, attempt_id, epoch, sha256, bytes, created_at) "
      "SELECT job_id, ?2, ?3, ?4, ?5, ?6 FROM jobs WHERE job_id = ?1 AND NOT trained "
      "AND state IN ('queued', 'assigned', 'running')",
      attempt.job_id, attempt.attempt_id, checkpoint.epoch(), checkpoint.sha256(),
      checkpoint.bytes(), now);
  if (stored == 0) batch.dropped_files.push_back(checkpoint.sha256());
}

WriteResult Do(Batch& batch, const RecordUpload& write) {
  {
    Query open = batch.db.Run(
        "SELECT (SELECT count(*) FROM uploads AS u WHERE u.attempt_id = a.attempt_id "
        "AND u.sha256 <> ?3) FROM attempts AS a "
        "WHERE a.attempt_id = ?1 AND a.token = ?2 AND a.outcome IS NULL",
        write.attempt_id, write.token, write.sha256);
    if (!open.Step()) return UploadRecorded{};
    if (open.Int(0) >= write.most) return UploadRecorded{.full = true};
  }
  if (!write.only_ask) {
    batch.db.Execute("INSERT OR REPLACE INTO uploads (attempt_id, sha256) VALUES (?, ?)",
                     write.attempt_id, write.sha256);
  }
  return UploadRecorded{.accepted = true};
}

WriteResult Do(Batch& batch, const FindUnused& write) {
  batch.db.Execute(
      "DELETE FROM uploads WHERE EXISTS (SELECT 1 FROM attempts AS a "
      "WHERE a.attempt_id = uploads.attempt_id AND a.outcome IS NOT NULL)");
  Unused result;
  for (const std::string& sha256 : write.sha256s) {
    // Only a recorded file whose time is over costs a look at every configuration.
    Query named = batch.db.Run(
        "SELECT EXISTS (SELECT 1 FROM artifacts WHERE sha256 = ?1) OR EXISTS "
        "(SELECT 1 FROM checkpoints WHERE sha256 = ?1) OR EXISTS "
        "(SELECT 1 FROM uploads WHERE sha256 = ?1) OR EXISTS "
        "(SELECT 1 FROM files AS f WHERE f.sha256 = ?1 AND (f.stored_at > ?2 OR EXISTS "
        "(SELECT 1 FROM configurations WHERE instr(template, f.sha256) > 0)))",
        sha256, write.now - kFileTime);
    if (named.Step() && named.Int(0) == 0) result.sha256s.push_back(sha256);
  }
  for (const std::string& sha256 : result.sha256s) {
    batch.db.Execute("DELETE FROM files WHERE sha256 = ?", sha256);
  }
  return result;
}

WriteResult Do(Batch& batch, const DropCheckpoints& write) {
  std::vector<std::pair<std::int64_t, std::uint64_t>> oldest;
  {
    std::uint64_t bytes = 0;
    Query rows = batch.db.Run("SELECT job_id, bytes FROM checkpoints ORDER BY created_at, job_id");
    while (bytes < write.bytes && rows.Step()) {
      oldest.emplace_back(rows.Int(0), static_cast<std::uint64_t>(rows.Int(1)));
      bytes += oldest.back().second;
    }
  }
  const std::size_t before = batch.dropped_files.size();
  for (const auto& [job_id, bytes] : oldest) DropCheckpoint(batch, job_id);
  return Unused{{batch.dropped_files.begin() + static_cast<std::ptrdiff_t>(before),
                 batch.dropped_files.end()}};
}

}  // namespace pelab::store
