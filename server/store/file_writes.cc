// Files that documents name: recording them, and finding the one that a job needs.
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/json_text.h"
#include "core/base/sha256.h"
#include "core/catalog/catalog.h"
#include "server/store/batch.h"

namespace pelab::store {

std::string FileOfSpec(const std::string& spec_json) {
  const auto spec = ParseJson(spec_json);
  const auto pe = spec.find("pe");
  if (pe == spec.end() || !pe->is_object()) return "";
  const auto name = pe->find("name");
  const auto file = pe->find("file");
  if (name == pe->end() || *name != catalog::OwnPe().name) return "";
  if (file == pe->end() || !file->is_string()) return "";
  std::string sha256 = file->get<std::string>();
  return IsSha256(sha256) ? sha256 : "";
}

std::vector<NeededFile> NeededFiles(Database& db, const Assignment& assignment) {
  if (assignment.pe != catalog::OwnPe().name) return {};
  const std::string sha256 = FileOfSpec(assignment.spec_json);
  if (sha256.empty()) return {};
  Query row = db.Run("SELECT bytes FROM files WHERE sha256 = ?", sha256);
  return {{sha256, row.Step() ? static_cast<std::uint64_t>(row.Int(0)) : 0}};
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
