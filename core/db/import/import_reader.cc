#include "core/db/import/import_reader.h"

#include <bit>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "core/base/strings.h"
#include "core/catalog/catalog.h"
#include "core/db/check/check.h"
#include "core/db/connection.h"
#include "core/db/raw_statement.h"
#include "core/db/row_columns.h"
#include "core/experiment/import_token.h"

namespace pelab::db {
namespace {

void AppendBits(std::uint64_t value, std::string& out) {
  for (int shift = 0; shift < 64; shift += 8) out += static_cast<char>((value >> shift) & 0xff);
}

// Calls `set` with the column unless it is NULL.
template <typename Set>
void IfThere(const SQLite::Column& column, const Set& set) {
  if (!column.isNull()) set(column);
}

template <typename Use>
void ForEachEpoch(SQLite::Database& db, std::int64_t job_id, const Use& use) {
  const RowColumns& columns = ColumnsOf<v1::Epoch>();
  RawStatement query(db, Concat("SELECT ", columns.sql(),
                                " FROM accepted_epochs WHERE job_id = ? ORDER BY epoch"));
  query.Bind(1, job_id);
  while (query.Step()) {
    v1::Epoch epoch;
    columns.Read(query, epoch);
    use(epoch);
  }
}

std::string HashOf(SQLite::Database& db, std::int64_t job_id) {
  CurveHash hash;
  ForEachEpoch(db, job_id, [&](const v1::Epoch& epoch) { hash.Add(epoch); });
  return hash.FinishHex();
}

// NOT_FOUND if there is no such trained job, for example because its sweep was deleted meanwhile.
absl::Status ReadRow(SQLite::Database& db, std::int64_t job_id, v1::ImportedJob& job) {
  SQLite::Statement query(
      db,
      "SELECT v.key, v.spec_json, v.pe_label, v.protocol, j.device_kind, j.memory_bytes, "
      "v.device, v.wall_seconds, j.execution_json, j.created_at, coalesce(j.ended_at, "
      "j.created_at) FROM v_jobs AS v JOIN jobs AS j USING (job_id) WHERE job_id = ? AND "
      "v.trained");
  query.bind(1, job_id);
  if (!query.executeStep()) return absl::NotFoundError(Concat("no trained job ", job_id));
  job.set_key(TextOf(query.getColumn(0)));
  job.set_spec_json(TextOf(query.getColumn(1)));
  job.set_pe_label(TextOf(query.getColumn(2)));
  job.set_protocol(TextOf(query.getColumn(3)));
  job.set_device_kind(TextOf(query.getColumn(4)));
  job.set_memory_bytes(static_cast<std::uint64_t>(query.getColumn(5).getInt64()));
  IfThere(query.getColumn(6), [&](const auto& c) { job.set_device(TextOf(c)); });
  IfThere(query.getColumn(7), [&](const auto& c) { job.set_wall_seconds(c.getDouble()); });
  IfThere(query.getColumn(8), [&](const auto& c) { job.set_execution_json(TextOf(c)); });
  job.set_created_at_ms(query.getColumn(9).getInt64());
  job.set_ended_at_ms(query.getColumn(10).getInt64());
  return absl::OkStatus();
}

void ReadAttempts(SQLite::Database& db, std::int64_t job_id, v1::ImportedJob& job) {
  const RowColumns& columns = ColumnsOf<v1::ImportedAttempt>();
  RawStatement query(db, Concat("SELECT ", columns.sql(),
                                " FROM attempts WHERE job_id = ? AND outcome IS NOT NULL "
                                "ORDER BY number"));
  query.Bind(1, job_id);
  std::set<std::string> workers;
  while (query.Step()) {
    v1::ImportedAttempt& attempt = *job.add_attempts();
    columns.Read(query, attempt);
    workers.insert(attempt.worker_id());
  }
  const RowColumns& of_worker = ColumnsOf<v1::ImportedWorker>();
  RawStatement worker(db, Concat("SELECT ", of_worker.sql(), " FROM workers WHERE worker_id = ?"));
  for (const std::string& id : workers) {
    worker.Reset();
    worker.Bind(1, id);
    if (worker.Step()) of_worker.Read(worker, *job.add_workers());
  }
}

void ReadEntries(SQLite::Database& db, std::int64_t analysis_id, v1::HeadAblation& matrix) {
  SQLite::Statement query(
      db,
      "SELECT correct, lost, gained, nll, nll_standard_error FROM head_ablation "
      "WHERE analysis_id = ? ORDER BY layer, head");
  query.bind(1, analysis_id);
  while (query.executeStep()) {
    matrix.add_missing(query.getColumn(0).isNull());
    matrix.add_correct(query.getColumn(0).getInt64());  // 0 if it is NULL
    matrix.add_lost(query.getColumn(1).getInt64());
    matrix.add_gained(query.getColumn(2).getInt64());
    matrix.add_nll(query.getColumn(3).getDouble());
    matrix.add_nll_standard_error(query.getColumn(4).getDouble());
  }
}

void ReadAnalyses(SQLite::Database& db, std::int64_t job_id, ExportedJob& out) {
  SQLite::Statement query(
      db,
      "SELECT n.analysis_id, n.name, n.version, n.parameters_json, a.number, n.layers, n.heads, "
      "n.intact_correct, n.total, n.seconds, n.result_json, n.created_at, n.intact_nll, n.chance "
      "FROM analyses AS n JOIN attempts AS a USING (attempt_id) "
      "WHERE n.job_id = ? AND a.outcome IS NOT NULL ORDER BY n.analysis_id");
  query.bind(1, job_id);
  while (query.executeStep()) {
    const bool is_matrix = query.getColumn(10).isNull();
    if (is_matrix && query.getColumn(12).isNull()) {
      out.left_out += 1;
      continue;
    }
    v1::ImportedAnalysis& analysis = out.analyses.emplace_back();
    analysis.set_attempt(query.getColumn(4).getInt());
    analysis.set_created_at_ms(query.getColumn(11).getInt64());
    if (is_matrix) {
      v1::HeadAblation& matrix = *analysis.mutable_head_ablation();
      matrix.set_version(query.getColumn(2).getInt());
      matrix.set_parameters_json(TextOf(query.getColumn(3)));
      matrix.set_layers(query.getColumn(5).getInt());
      matrix.set_heads(query.getColumn(6).getInt());
      matrix.set_intact_correct(query.getColumn(7).getInt64());
      matrix.set_total(query.getColumn(8).getInt64());
      matrix.set_seconds(query.getColumn(9).getDouble());
      matrix.set_intact_nll(query.getColumn(12).getDouble());
      matrix.set_chance(query.getColumn(13).getDouble());
      ReadEntries(db, query.getColumn(0).getInt64(), matrix);
    } else {
      v1::AnalysisResult& result = *analysis.mutable_result();
      result.set_name(TextOf(query.getColumn(1)));
      result.set_version(query.getColumn(2).getInt());
      result.set_parameters_json(TextOf(query.getColumn(3)));
      result.set_seconds(query.getColumn(9).getDouble());
      result.set_result_json(TextOf(query.getColumn(10)));
    }
  }
}

// The files of the job's attempts, and those that its spec names. (In a spec, "task" comes after
// "pe": docs/formats.md.)
void ReadFiles(SQLite::Database& db, std::int64_t job_id, ExportedJob& out) {
  const RowColumns& columns = ColumnsOf<v1::ImportedFile>();
  RawStatement query(
      db, Concat("SELECT ", columns.sql(),
                 " FROM (SELECT a.number AS attempt, f.name, f.sha256, f.bytes FROM artifacts AS f "
                 "JOIN attempts AS a USING (attempt_id) WHERE a.job_id = ?1 AND "
                 "a.outcome IS NOT NULL UNION ALL SELECT 0, "
                 "iif(instr(c.template, '\"task\":') < instr(c.template, f.sha256), "
                 "'data.safetensors', 'encoding.pt'), f.sha256, f.bytes "
                 "FROM jobs AS j JOIN configurations AS c USING (configuration_id) "
                 "JOIN files AS f ON instr(c.template, f.sha256) > 0 WHERE j.job_id = ?1 AND "
                 "(j.pe = '",
                 catalog::OwnPe().name, "' OR j.task GLOB '", catalog::OwnTask().name,
                 ":*')) ORDER BY attempt, name"));
  query.Bind(1, job_id);
  while (query.Step()) columns.Read(query, out.files.emplace_back());
}

v1::ImportVerdict Verdict(SQLite::Database& db, const v1::ImportKey& wanted) {
  SQLite::Statement query(db, "SELECT job_id, state, trained FROM v_jobs WHERE key = ?");
  query.bind(1, wanted.key());
  if (!query.executeStep()) return v1::IMPORT_VERDICT_NEW;
  const std::string state = TextOf(query.getColumn(1));
  if (query.getColumn(2).getInt() != 0) {
    return HashOf(db, query.getColumn(0).getInt64()) == wanted.curve_sha256()
               ? v1::IMPORT_VERDICT_PRESENT
               : v1::IMPORT_VERDICT_DIFFERENT;
  }
  return state == "failed" || state == "cancelled" ? v1::IMPORT_VERDICT_NEW
                                                   : v1::IMPORT_VERDICT_IN_FLIGHT;
}

class SqliteImportReader final : public ImportReader {
 public:
  SqliteImportReader(std::string path, std::unique_ptr<Connection> connection)
      : path_(std::move(path)), connection_(std::move(connection)) {}

  absl::StatusOr<std::vector<FinishedJob>> Finished(std::int64_t* others) override {
    return connection_->Read([&](SQLite::Database& db) -> absl::StatusOr<std::vector<FinishedJob>> {
      SQLite::Statement query(db, "SELECT job_id, key FROM v_jobs WHERE trained ORDER BY job_id");
      std::vector<FinishedJob> jobs;
      while (query.executeStep()) {
        jobs.push_back({query.getColumn(0).getInt64(), TextOf(query.getColumn(1))});
      }
      *others = db.execAndGet("SELECT count(*) FROM v_jobs WHERE NOT trained").getInt64();
      return jobs;
    });
  }
  absl::StatusOr<std::string> HashOfCurve(std::int64_t job_id) override {
    return connection_->Read(
        [&](auto& db) -> absl::StatusOr<std::string> { return HashOf(db, job_id); });
  }
  absl::StatusOr<ExportedJob> ReadJob(std::int64_t job_id) override {
    return connection_->Read([&](SQLite::Database& db) -> absl::StatusOr<ExportedJob> {
      ExportedJob job;
      if (absl::Status status = ReadRow(db, job_id, job.job); !status.ok()) return status;
      ReadAttempts(db, job_id, job.job);
      ForEachEpoch(db, job_id, [&](const v1::Epoch& epoch) { job.epochs.push_back(epoch); });
      ReadAnalyses(db, job_id, job);
      ReadFiles(db, job_id, job);
      return job;
    });
  }
  std::optional<std::string> PathOf(std::int64_t, const v1::ImportedFile& file) override {
    return ArtifactPath(path_, file.sha256());
  }
  absl::StatusOr<std::vector<ExportedSweep>> Sweeps() override {
    return connection_->Read(
        [&](SQLite::Database& db) -> absl::StatusOr<std::vector<ExportedSweep>> {
          SQLite::Statement query(
              db,
              "SELECT sweep_id, client_token, name, protocol, document, file_name, overrides_json, "
              "analyses_json, resources_json, extensions_json, priority, cells, created_at, state, "
              "trace_id, span_id FROM sweeps WHERE state <> 'expanding' AND deleted = 0 AND "
              "expanded_cells = cells ORDER "
              "BY sweep_id");
          std::vector<ExportedSweep> sweeps;
          while (query.executeStep()) sweeps.push_back(ReadSweep(query));
          return sweeps;
        });
  }
  absl::StatusOr<v1::ImportedCells> Cells(std::int64_t sweep_id, std::uint64_t from,
                                          int limit) override {
    return connection_->Read([&](SQLite::Database& db) -> absl::StatusOr<v1::ImportedCells> {
      // After the largest ordinal there is none. Bound as a negative number, `from` would begin
      // again with the first one.
      if (!std::in_range<std::int64_t>(from)) return v1::ImportedCells();
      SQLite::Statement query(db,
                              "SELECT ordinal, key FROM v_sweep_jobs WHERE sweep_id = ? AND "
                              "ordinal >= ? ORDER BY ordinal LIMIT ?");
      query.bind(1, sweep_id);
      query.bind(2, static_cast<std::int64_t>(from));
      query.bind(3, limit);
      v1::ImportedCells cells;
      while (query.executeStep()) {
        cells.add_ordinals(static_cast<std::uint64_t>(query.getColumn(0).getInt64()));
        cells.add_keys(TextOf(query.getColumn(1)));
      }
      return cells;
    });
  }
  absl::StatusOr<std::vector<v1::ImportVerdict>> Check(
      const v1::CheckImportRequest& request) override {
    return connection_->Read(
        [&](SQLite::Database& db) -> absl::StatusOr<std::vector<v1::ImportVerdict>> {
          std::vector<v1::ImportVerdict> verdicts;
          for (const v1::ImportKey& key : request.keys()) verdicts.push_back(Verdict(db, key));
          return verdicts;
        });
  }

 private:
  // A sweep that was itself imported keeps its token, so that the same sweep has the same token in
  // every database.
  static ExportedSweep ReadSweep(SQLite::Statement& query) {
    ExportedSweep out{.sweep_id = query.getColumn(0).getInt64(), .sweep = {}};
    v1::ImportedSweep& sweep = out.sweep;
    sweep.set_token(experiment::ImportToken(TextOf(query.getColumn(1))));
    sweep.set_name(TextOf(query.getColumn(2)));
    sweep.set_protocol(TextOf(query.getColumn(3)));
    sweep.set_document(TextOf(query.getColumn(4)));
    sweep.set_file_name(TextOf(query.getColumn(5)));
    sweep.set_overrides_json(TextOf(query.getColumn(6)));
    sweep.set_analyses_json(TextOf(query.getColumn(7)));
    sweep.set_resources_json(TextOf(query.getColumn(8)));
    sweep.set_extensions_json(TextOf(query.getColumn(9)));
    sweep.set_priority(query.getColumn(10).getInt());
    sweep.set_cells(static_cast<std::uint64_t>(query.getColumn(11).getInt64()));
    sweep.set_created_at_ms(query.getColumn(12).getInt64());
    sweep.set_whole(TextOf(query.getColumn(13)) != "cancelled");
    sweep.set_trace_id(TextOf(query.getColumn(14)));
    sweep.set_span_id(TextOf(query.getColumn(15)));
    return out;
  }

  const std::string path_;
  std::unique_ptr<Connection> connection_;
};

}  // namespace

void CurveHash::Add(const v1::Epoch& epoch) {
  using google::protobuf::FieldDescriptor;
  const google::protobuf::Reflection& get = *epoch.GetReflection();
  const google::protobuf::Descriptor& fields = *v1::Epoch::descriptor();
  std::string bytes;
  for (int i = 0; i < fields.field_count(); ++i) {
    const FieldDescriptor* field = fields.field(i);
    if (field->number() == v1::Epoch::kSecondsFieldNumber) continue;
    if (field->has_presence() && !get.HasField(epoch, field)) continue;
    AppendBits(field->cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE
                   ? std::bit_cast<std::uint64_t>(get.GetDouble(epoch, field))
               : field->cpp_type() == FieldDescriptor::CPPTYPE_INT32
                   ? static_cast<std::uint64_t>(get.GetInt32(epoch, field))
                   : static_cast<std::uint64_t>(get.GetInt64(epoch, field)),
               bytes);
  }
  hash_.Update(bytes);
}

absl::StatusOr<std::unique_ptr<ImportReader>> ImportReader::Open(const std::string& path) {
  absl::StatusOr<std::unique_ptr<Connection>> connection = Connection::Open(path);
  if (!connection.ok()) return connection.status();
  return std::make_unique<SqliteImportReader>(path, *std::move(connection));
}

}  // namespace pelab::db
