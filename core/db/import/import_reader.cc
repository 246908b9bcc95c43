#include "core/db/import/import_reader.h"

#include <bit>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "core/base/strings.h"
#include "core/db/connection.h"

namespace pelab::db {
namespace {

void AppendBits(std::uint64_t value, std::string& out) {
  for (int shift = 0; shift < 64; shift += 8) out += static_cast<char>((value >> shift) & 0xff);
}
void AppendBits(double value, std::string& out) {
  AppendBits(std::bit_cast<std::uint64_t>(value), out);
}

// Calls `set` with the column unless it is NULL.
template <typename Set>
void IfThere(const SQLite::Column& column, const Set& set) {
  if (!column.isNull()) set(column);
}

constexpr char kEpochs[] =
    "SELECT epoch, train_loss, train_correct, train_total, test_loss, test_correct, test_total, "
    "learning_rate, seconds FROM accepted_epochs WHERE job_id = ? ORDER BY epoch";

template <typename Use>
void ForEachEpoch(SQLite::Database& db, std::int64_t job_id, const Use& use) {
  SQLite::Statement query(db, kEpochs);
  query.bind(1, job_id);
  v1::Epoch epoch;
  while (query.executeStep()) {
    epoch.set_epoch(query.getColumn(0).getInt());
    epoch.set_train_loss(query.getColumn(1).getDouble());
    epoch.set_train_correct(query.getColumn(2).getInt64());
    epoch.set_train_total(query.getColumn(3).getInt64());
    epoch.set_test_loss(query.getColumn(4).getDouble());
    epoch.set_test_correct(query.getColumn(5).getInt64());
    epoch.set_test_total(query.getColumn(6).getInt64());
    epoch.set_learning_rate(query.getColumn(7).getDouble());
    epoch.set_seconds(query.getColumn(8).getDouble());
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
  job.set_key(query.getColumn(0).getString());
  job.set_spec_json(query.getColumn(1).getString());
  job.set_pe_label(query.getColumn(2).getString());
  job.set_protocol(query.getColumn(3).getString());
  job.set_device_kind(query.getColumn(4).getString());
  job.set_memory_bytes(static_cast<std::uint64_t>(query.getColumn(5).getInt64()));
  IfThere(query.getColumn(6), [&](const auto& c) { job.set_device(c.getString()); });
  IfThere(query.getColumn(7), [&](const auto& c) { job.set_wall_seconds(c.getDouble()); });
  IfThere(query.getColumn(8), [&](const auto& c) { job.set_execution_json(c.getString()); });
  job.set_created_at_ms(query.getColumn(9).getInt64());
  job.set_ended_at_ms(query.getColumn(10).getInt64());
  return absl::OkStatus();
}

void ReadAttempts(SQLite::Database& db, std::int64_t job_id, v1::ImportedJob& job) {
  SQLite::Statement query(
      db,
      "SELECT worker_id, slot, device, analyses_json, start_epoch, environment_json, outcome, "
      "error_kind, error, started_at, ended_at FROM attempts WHERE job_id = ? AND outcome IS NOT "
      "NULL ORDER BY number");
  query.bind(1, job_id);
  std::set<std::string> workers;
  while (query.executeStep()) {
    v1::ImportedAttempt& attempt = *job.add_attempts();
    attempt.set_worker_id(query.getColumn(0).getString());
    attempt.set_slot(query.getColumn(1).getInt());
    attempt.set_device(query.getColumn(2).getString());
    attempt.set_analyses_json(query.getColumn(3).getString());
    IfThere(query.getColumn(4), [&](const auto& c) { attempt.set_start_epoch(c.getInt()); });
    IfThere(query.getColumn(5),
            [&](const auto& c) { attempt.set_environment_json(c.getString()); });
    v1::AttemptOutcome outcome = v1::ATTEMPT_OUTCOME_UNSPECIFIED;
    v1::AttemptOutcome_Parse(UpperName("ATTEMPT_OUTCOME_", query.getColumn(6)), &outcome);
    attempt.set_outcome(outcome);
    IfThere(query.getColumn(7), [&](const auto& c) { attempt.set_error_kind(c.getString()); });
    IfThere(query.getColumn(8), [&](const auto& c) { attempt.set_error(c.getString()); });
    attempt.set_started_at_ms(query.getColumn(9).getInt64());
    attempt.set_ended_at_ms(query.getColumn(10).getInt64());
    workers.insert(attempt.worker_id());
  }
  SQLite::Statement worker(
      db, "SELECT host, version, slots_json, slots, last_seen_at FROM workers WHERE worker_id = ?");
  for (const std::string& id : workers) {
    worker.reset();
    worker.bind(1, id);
    if (!worker.executeStep()) continue;
    v1::ImportedWorker& row = *job.add_workers();
    row.set_worker_id(id);
    row.set_host(worker.getColumn(0).getString());
    row.set_version(worker.getColumn(1).getString());
    row.set_slots_json(worker.getColumn(2).getString());
    row.set_slots(worker.getColumn(3).getInt());
    row.set_last_seen_at_ms(worker.getColumn(4).getInt64());
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
      matrix.set_parameters_json(query.getColumn(3).getString());
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
      result.set_name(query.getColumn(1).getString());
      result.set_version(query.getColumn(2).getInt());
      result.set_parameters_json(query.getColumn(3).getString());
      result.set_seconds(query.getColumn(9).getDouble());
      result.set_result_json(query.getColumn(10).getString());
    }
  }
}

void ReadFiles(SQLite::Database& db, std::int64_t job_id, ExportedJob& out) {
  SQLite::Statement query(db,
                          "SELECT a.number, f.name, f.sha256, f.bytes FROM artifacts AS f "
                          "JOIN attempts AS a USING (attempt_id) WHERE a.job_id = ? AND a.outcome "
                          "IS NOT NULL ORDER BY a.number, f.name");
  query.bind(1, job_id);
  while (query.executeStep()) {
    v1::ImportedFile& file = out.files.emplace_back();
    file.set_attempt(query.getColumn(0).getInt());
    file.set_name(query.getColumn(1).getString());
    file.set_sha256(query.getColumn(2).getString());
    file.set_bytes(static_cast<std::uint64_t>(query.getColumn(3).getInt64()));
  }
}

v1::ImportVerdict Verdict(SQLite::Database& db, const v1::ImportKey& wanted) {
  SQLite::Statement query(db, "SELECT job_id, state, trained FROM v_jobs WHERE key = ?");
  query.bind(1, wanted.key());
  if (!query.executeStep()) return v1::IMPORT_VERDICT_NEW;
  const std::string state = query.getColumn(1).getString();
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
  explicit SqliteImportReader(std::unique_ptr<Connection> connection)
      : connection_(std::move(connection)) {}

  absl::StatusOr<std::vector<FinishedJob>> Finished(std::int64_t* others) override {
    return connection_->Read([&](auto& db) -> absl::StatusOr<std::vector<FinishedJob>> {
      SQLite::Statement query(db, "SELECT job_id, key FROM v_jobs WHERE trained ORDER BY job_id");
      std::vector<FinishedJob> jobs;
      while (query.executeStep()) {
        jobs.push_back({query.getColumn(0).getInt64(), query.getColumn(1).getString()});
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
    return connection_->Read([&](auto& db) -> absl::StatusOr<ExportedJob> {
      ExportedJob job;
      if (absl::Status status = ReadRow(db, job_id, job.job); !status.ok()) return status;
      ReadAttempts(db, job_id, job.job);
      ForEachEpoch(db, job_id, [&](const v1::Epoch& epoch) { job.epochs.push_back(epoch); });
      ReadAnalyses(db, job_id, job);
      ReadFiles(db, job_id, job);
      return job;
    });
  }
  absl::StatusOr<std::vector<ExportedSweep>> Sweeps() override {
    return connection_->Read([&](auto& db) -> absl::StatusOr<std::vector<ExportedSweep>> {
      SQLite::Statement query(
          db,
          "SELECT sweep_id, client_token, name, protocol, document, file_name, overrides_json, "
          "analyses_json, resources_json, extensions_json, priority, cells, created_at, state "
          "FROM sweeps WHERE state <> 'expanding' AND deleted = 0 AND expanded_cells = cells ORDER "
          "BY sweep_id");
      std::vector<ExportedSweep> sweeps;
      while (query.executeStep()) sweeps.push_back(ReadSweep(query));
      return sweeps;
    });
  }
  absl::StatusOr<v1::ImportedCells> Cells(std::int64_t sweep_id, std::uint64_t from,
                                          int limit) override {
    return connection_->Read([&](auto& db) -> absl::StatusOr<v1::ImportedCells> {
      SQLite::Statement query(db,
                              "SELECT ordinal, key FROM v_sweep_jobs WHERE sweep_id = ? AND "
                              "ordinal >= ? ORDER BY ordinal LIMIT ?");
      query.bind(1, sweep_id);
      query.bind(2, static_cast<std::int64_t>(from));
      query.bind(3, limit);
      v1::ImportedCells cells;
      while (query.executeStep()) {
        cells.add_ordinals(static_cast<std::uint64_t>(query.getColumn(0).getInt64()));
        cells.add_keys(query.getColumn(1).getString());
      }
      return cells;
    });
  }
  absl::StatusOr<std::vector<v1::ImportVerdict>> Check(
      const v1::CheckImportRequest& request) override {
    return connection_->Read([&](auto& db) -> absl::StatusOr<std::vector<v1::ImportVerdict>> {
      std::vector<v1::ImportVerdict> verdicts;
      for (const v1::ImportKey& key : request.keys()) verdicts.push_back(Verdict(db, key));
      return verdicts;
    });
  }

 private:
  // A sweep that was itself imported keeps its token, so that the same sweep has the same token in
  // every database.
  static ExportedSweep ReadSweep(SQLite::Statement& query) {
    constexpr char kImported[] = "import-";
    ExportedSweep out{.sweep_id = query.getColumn(0).getInt64(), .sweep = {}};
    v1::ImportedSweep& sweep = out.sweep;
    const std::string token = query.getColumn(1).getString();
    sweep.set_token(token.starts_with(kImported) ? token : kImported + Sha256Hex(token));
    sweep.set_name(query.getColumn(2).getString());
    sweep.set_protocol(query.getColumn(3).getString());
    sweep.set_document(query.getColumn(4).getString());
    sweep.set_file_name(query.getColumn(5).getString());
    sweep.set_overrides_json(query.getColumn(6).getString());
    sweep.set_analyses_json(query.getColumn(7).getString());
    sweep.set_resources_json(query.getColumn(8).getString());
    sweep.set_extensions_json(query.getColumn(9).getString());
    sweep.set_priority(query.getColumn(10).getInt());
    sweep.set_cells(static_cast<std::uint64_t>(query.getColumn(11).getInt64()));
    sweep.set_created_at_ms(query.getColumn(12).getInt64());
    sweep.set_whole(query.getColumn(13).getString() != "cancelled");
    return out;
  }

  std::unique_ptr<Connection> connection_;
};

}  // namespace

void CurveHash::Add(const v1::Epoch& epoch) {
  std::string bytes;
  AppendBits(static_cast<std::uint64_t>(epoch.epoch()), bytes);
  AppendBits(epoch.train_loss(), bytes);
  AppendBits(static_cast<std::uint64_t>(epoch.train_correct()), bytes);
  AppendBits(static_cast<std::uint64_t>(epoch.train_total()), bytes);
  AppendBits(epoch.test_loss(), bytes);
  AppendBits(static_cast<std::uint64_t>(epoch.test_correct()), bytes);
  AppendBits(static_cast<std::uint64_t>(epoch.test_total()), bytes);
  AppendBits(epoch.learning_rate(), bytes);
  hash_.Update(bytes);
}

absl::StatusOr<std::unique_ptr<ImportReader>> ImportReader::Open(const std::string& path) {
  absl::StatusOr<std::unique_ptr<Connection>> connection = Connection::Open(path);
  if (!connection.ok()) return connection.status();
  return std::make_unique<SqliteImportReader>(*std::move(connection));
}

}  // namespace pelab::db
