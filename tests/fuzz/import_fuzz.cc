// A database that somebody else has made: reading, checking and importing it crashes nothing, and
// what is imported leaves this database sound.
//
// The first byte of an input says how the foreign file is made: Q runs the rest as SQL on a good
// database, F takes the rest as the file, and anything else overwrites pieces of a good database
// (three bytes of offset, two of length, the bytes).
#include <sqlite3.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "absl/strings/str_join.h"
#include "core/db/check/check.h"
#include "core/db/import/import_reader.h"
#include "core/db/read/reader.h"
#include "server/service/import_parts.h"
#include "server/store/database.h"
#include "tests/fuzz/empty_database.h"
#include "tests/fuzz/quiet.h"
#include "tests/fuzz/small_database.h"

namespace pelab::import_fuzz {
namespace {

using fuzz::Require;

constexpr int kMostSteps = 2000;  // of SQLite's machine, in hundreds
constexpr std::size_t kMostJobs = 20;
constexpr int kCells = 64;

// A script may change everything in its file, and nothing else.
int Authorize(void*, int action, const char* what, const char*, const char*, const char*) {
  if (action == SQLITE_ATTACH) return SQLITE_DENY;
  if (action != SQLITE_PRAGMA) return SQLITE_OK;
  for (const char* allowed : {"application_id", "user_version", "foreign_keys"}) {
    if (std::string_view(what) == allowed) return SQLITE_OK;
  }
  return SQLITE_DENY;
}

void RunScript(const std::string& path, const std::string& script) {
  sqlite3* db = nullptr;
  Require(sqlite3_open(path.c_str(), &db) == SQLITE_OK, "the copy opens");
  sqlite3_limit(db, SQLITE_LIMIT_LENGTH, 1 << 20);
  sqlite3_exec(
      db,
      "PRAGMA journal_mode = DELETE; PRAGMA synchronous = OFF; PRAGMA max_page_count = 400;"
      "PRAGMA ignore_check_constraints = ON; PRAGMA writable_schema = ON",
      nullptr, nullptr, nullptr);
  int left = kMostSteps;
  sqlite3_progress_handler(
      db, 100, [](void* steps) { return --*static_cast<int*>(steps) < 0 ? 1 : 0; }, &left);
  sqlite3_set_authorizer(db, Authorize, nullptr);
  sqlite3_exec(db, script.c_str(), nullptr, nullptr, nullptr);
  sqlite3_close(db);
}

std::string FileBytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Makes the foreign file at `path`.
void MakeForeign(fuzz::Input input, const std::string& path) {
  static const fuzz::SmallDatabase original;
  static const std::string& good = *new std::string(FileBytes(original.path()));
  const auto kind = static_cast<char>(input.Number(1));
  std::string file = kind == 'F' ? std::string(input.Rest()) : good;
  while (kind != 'Q' && !input.empty()) {
    const std::size_t at = input.Number(3) % file.size();
    const std::string_view piece = input.Piece();
    const std::size_t fits = std::min(piece.size(), file.size() - at);
    file.replace(at, fits, piece.substr(0, fits));
  }
  fuzz::RemoveDatabase(path);
  std::ofstream(path, std::ios::binary) << file;
  if (kind == 'Q') RunScript(path, std::string(input.Rest()));
}

template <typename Answer>
void RequireReadable(const absl::StatusOr<Answer>& answer) {
  if (!answer.ok()) return fuzz::RequireSentence(answer.status().message());
  Answer back;
  Require(back.ParseFromString(answer->SerializeAsString()), "a row can be read",
          answer->ShortDebugString());
}

// As `pelab … --db FILE`.
void ReadAll(const std::string& path) {
  const auto opened = db::Reader::Open(path);
  if (!opened.ok()) return fuzz::RequireSentence(opened.status().message());
  db::Reader& reader = **opened;
  RequireReadable(reader.ListJobs({}));
  RequireReadable(reader.ListCurves({}));
  RequireReadable(reader.ListEpochsTo({}));
  RequireReadable(reader.ListHeadAblations({}));
  RequireReadable(reader.ListDeposits({}));
  RequireReadable(reader.ListAnalyses({}));
  RequireReadable(reader.ListArtifacts({}));
  RequireReadable(reader.ListAttempts({}));
  RequireReadable(reader.ListWorkers({}));
  RequireReadable(reader.ListSweeps({}));
  RequireReadable(reader.GetSweep("1"));
  const auto checks = db::CheckDatabase(path);
  if (!checks.ok()) fuzz::RequireSentence(checks.status().message());
}

// The database that imports.
class Target {
 public:
  Target() : store_(*store::Store::Open(fuzz::EmptyDatabase())) {}

  void Import(db::ExportedJob&& exported) {
    auto job = service::ToImportJob(std::move(exported.job));
    if (!job.ok()) return fuzz::RequireRefusal(job.status());
    for (const v1::ImportedFile& file : exported.files) {
      if (!service::CheckFile(file).ok()) return;
    }
    job->epochs = std::move(exported.epochs);
    job->analyses = std::move(exported.analyses);
    job->files = std::move(exported.files);
    const auto imported = Do<store::JobImported>(*std::move(job));
    if (!imported.refused.empty()) fuzz::RequireSentence(imported.refused);
  }
  void Import(db::ImportReader& reader, const db::ExportedSweep& exported) {
    auto sweep = service::ToImportSweep(exported.sweep);
    if (!sweep.ok()) return fuzz::RequireRefusal(sweep.status());
    const auto cells = reader.Cells(exported.sweep_id, 0, kCells);
    if (!cells.ok()) return;
    for (int i = 0; i < cells->keys_size(); ++i) {
      if (cells->ordinals(i) >= sweep->cells) return;
      sweep->jobs.emplace_back(cells->ordinals(i), cells->keys(i));
    }
    const auto imported = Do<store::SweepImported>(*sweep);
    if (!imported.refused.empty()) return fuzz::RequireSentence(imported.refused);
    const bool all_here = imported.jobs > 0 && imported.missing == 0 && !imported.finished;
    if (!exported.sweep.whole() || !all_here) return;
    sweep->jobs.clear();
    sweep->finish = true;
    Do<store::SweepImported>(*sweep);
  }
  void RequireSound() {
    for (const db::Check& check : db::CheckConnection(store_->database().connection())) {
      Require(check.problems.empty(), check.name, absl::StrJoin(check.problems, "; "));
    }
  }

 private:
  template <typename Result>
  Result Do(store::Write write) {
    const std::vector<store::Write> writes = {std::move(write)};
    const auto results = store_->Apply(writes);
    Require(results.ok(), "an import is no failure", results.status().ToString());
    Require(results->front().ok(), "the checks find what the schema refuses",
            results->front().status().ToString());
    return std::get<Result>(*results->front());
  }

  const std::unique_ptr<store::Store> store_;
};

// As `pelab import`, with the coordinator's checks and writes.
void ImportAll(const std::string& path) {
  const auto opened = db::ImportReader::Open(path);
  if (!opened.ok()) return fuzz::RequireSentence(opened.status().message());
  db::ImportReader& reader = **opened;
  std::int64_t others = 0;
  auto jobs = reader.Finished(&others);
  if (!jobs.ok()) return fuzz::RequireSentence(jobs.status().message());
  if (jobs->size() > kMostJobs) jobs->resize(kMostJobs);
  Target target;
  for (const db::FinishedJob& job : *jobs) {
    const auto hash = reader.HashOfCurve(job.job_id);
    if (!hash.ok()) fuzz::RequireSentence(hash.status().message());
    auto exported = reader.ReadJob(job.job_id);
    if (exported.ok()) target.Import(*std::move(exported));
  }
  const auto sweeps = reader.Sweeps();
  if (!sweeps.ok()) return fuzz::RequireSentence(sweeps.status().message());
  for (const db::ExportedSweep& sweep : *sweeps) target.Import(reader, sweep);
  target.RequireSound();
}

}  // namespace

PELAB_FUZZ_TARGET(import) {
  static const TempDir directory;
  const std::string path = directory / "foreign.db";
  MakeForeign(fuzz::Input(data, size), path);
  ReadAll(path);
  ImportAll(path);
  return 0;
}

}  // namespace pelab::import_fuzz
