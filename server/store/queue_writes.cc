// Queues in which pelab-scale starts workers.
#include <cstdint>
#include <optional>
#include <string>

#include "server/limits.h"
#include "server/store/batch.h"

namespace pelab::store {
namespace {

StoredQueue ReadQueue(const Query& row) {
  return {.name = row.Text(0),
          .settings_json = row.Text(1),
          .paused_reason = row.Text(2),
          .paused_at = row.Int(3),
          .removing = row.Int(4) != 0};
}

std::optional<StoredQueue> LoadQueue(Database& db, const std::string& name) {
  Query row = db.Run(
      "SELECT name, settings_json, coalesce(paused_reason, ''), coalesce(paused_at, 0), removing "
      "FROM queues WHERE name = ?",
      name);
  if (!row.Step()) return std::nullopt;
  return ReadQueue(row);
}

bool HasRoomForQueue(Database& db, const std::string& name) {
  Query others = db.Run("SELECT count(*) FROM queues WHERE name <> ?", name);
  return !others.Step() || others.Int(0) < limits::kQueues;
}

QueueStored LoadChanged(Batch& batch, const std::string& name) {
  const std::optional<StoredQueue> queue = LoadQueue(batch.db, name);
  if (!queue) return {.refusal = QueueStored::kUnknown};
  return {.queue = *queue};
}

}  // namespace

absl::StatusOr<std::vector<StoredQueue>> Store::Queues() {
  try {
    std::vector<StoredQueue> queues;
    Query rows = database_->Run(
        "SELECT name, settings_json, coalesce(paused_reason, ''), coalesce(paused_at, 0), removing "
        "FROM queues ORDER BY name");
    while (rows.Step()) queues.push_back(ReadQueue(rows));
    return queues;
  } catch (const SQLite::Exception& error) {
    return ToStatus(error, "cannot read the database");
  }
}

WriteResult Do(Batch& batch, const PutQueue& write) {
  if (!HasRoomForQueue(batch.db, write.name)) return QueueStored{.refusal = QueueStored::kTooMany};
  batch.db.Execute(
      "INSERT INTO queues (name, settings_json, changed_at) VALUES (?, ?, ?) "
      "ON CONFLICT (name) DO UPDATE SET settings_json = excluded.settings_json, removing = 0, "
      "changed_at = excluded.changed_at",
      write.name, write.settings_json, write.now);
  return LoadChanged(batch, write.name);
}

WriteResult Do(Batch& batch, const PauseQueue& write) {
  batch.db.Execute(
      "UPDATE queues SET paused_reason = nullif(?2, ''), "
      "paused_at = CASE WHEN ?2 = '' THEN NULL ELSE coalesce(paused_at, ?3) END, changed_at = ?3 "
      "WHERE name = ?1 AND (paused_reason IS NULL OR ?4 = 0)",
      write.name, write.reason, write.now, write.keep_reason);
  return LoadChanged(batch, write.name);
}

WriteResult Do(Batch& batch, const RemoveQueue& write) {
  std::optional<StoredQueue> queue = LoadQueue(batch.db, write.name);
  if (!queue || (write.only_marked && !queue->removing)) {
    return QueueStored{.refusal = QueueStored::kUnknown};
  }
  if (write.mark) {
    batch.db.Execute("UPDATE queues SET removing = 1, changed_at = ? WHERE name = ?", write.now,
                     write.name);
    queue->removing = true;
  } else {
    batch.db.Execute("DELETE FROM queues WHERE name = ?", write.name);
  }
  return QueueStored{.queue = *std::move(queue), .removed = !write.mark};
}

}  // namespace pelab::store
