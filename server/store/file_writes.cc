// Files that documents name: recording them, and finding those that a job needs.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/base/json_text.h"
#include "core/base/sha256.h"
#include "core/catalog/catalog.h"
#include "core/experiment/job.h"
#include "server/store/batch.h"

namespace pelab::store {

std::vector<std::string> FilesOfSpec(const std::string& spec_json) {
  std::vector<std::string> files;
  const auto spec = ParseJson(spec_json);
  if (!spec.is_object()) return files;
  for (const auto& [group, own] :
       {std::pair("pe", catalog::OwnPe().name), std::pair("task", catalog::OwnTask().name)}) {
    const auto part = spec.find(group);
    if (part == spec.end() || !part->is_object()) continue;
    const auto name = part->find("name");
    const auto file = part->find("file");
    if (name == part->end() || *name != own) continue;
    if (file == part->end() || !file->is_string()) continue;
    const std::string sha256 = file->get<std::string>();
    if (IsSha256(sha256)) files.push_back(sha256);
  }
  return files;
}

std::vector<NeededFile> NeededFiles(Database& db, const Assignment& assignment) {
  const bool own = assignment.pe == catalog::OwnPe().name ||
                   experiment::TaskOfLabel(assignment.task) == catalog::OwnTask().name;
  std::vector<NeededFile> needed;
  if (!own) return needed;
  for (const std::string& sha256 : FilesOfSpec(assignment.spec_json)) {
    Query row = db.Run("SELECT bytes FROM files WHERE sha256 = ?", sha256);
    needed.push_back({sha256, row.Step() ? static_cast<std::uint64_t>(row.Int(0)) : 0});
  }
  return needed;
}

WriteResult Do(Batch& batch, const RecordFile& write) {
  batch.db.Execute("INSERT OR REPLACE INTO files (sha256, bytes, stored_at) VALUES (?, ?, ?)",
                   write.sha256, write.bytes, write.now);
  return Nothing{};
}

WriteResult Do(Batch& batch, const RenewFiles& write) {
  FilesRenewed result;
  for (const std::string& sha256 : write.sha256s) {
    const int known =
        batch.db.Execute("UPDATE files SET stored_at = ? WHERE sha256 = ?", write.now, sha256);
    if (known == 0) result.unknown.push_back(sha256);
  }
  return result;
}

}  // namespace pelab::store
