#include <cstdint>
#include <set>

#include "core/base/strings.h"
#include "core/db/read/filter.h"
#include "core/db/read/queries.h"

namespace pelab::db {
namespace {

// If the spec is requested, it follows as the last column.
constexpr char kJobColumns[] =
    "j.job_id, j.key, j.generation, j.pe, j.pe_label, j.task, j.protocol, j.seed, j.state, "
    "j.attempts, j.device, j.epochs, j.epochs_done, j.train_accuracy, j.test_accuracy, "
    "j.best_test_accuracy, j.wall_seconds, j.error, j.train_correct, j.train_total, "
    "j.test_correct, j.test_total, j.trained, j.configuration_id, j.train_loss, j.test_loss, "
    "j.diverged, j.warning";

v1::JobRow ReadJob(SQLite::Statement& query) {
  v1::JobRow row;
  int i = 0;
  const auto next = [&] { return query.getColumn(i++); };
  row.set_job_id(next().getInt64());
  row.set_key(next().getString());
  row.set_generation(next().getInt());
  row.set_pe(next().getString());
  row.set_pe_label(next().getString());
  row.set_task(next().getString());
  row.set_protocol(next().getString());
  row.set_seed(next().getInt64());
  v1::JobState state = v1::JOB_STATE_UNSPECIFIED;
  v1::JobState_Parse(UpperName("JOB_STATE_", next()), &state);
  row.set_state(state);
  row.set_attempts(next().getInt());
  if (const auto c = next(); !c.isNull()) row.set_device(c.getString());
  row.set_epochs(next().getInt());
  row.set_epochs_done(next().getInt());
  if (const auto c = next(); !c.isNull()) row.set_train_accuracy(c.getDouble());
  if (const auto c = next(); !c.isNull()) row.set_test_accuracy(c.getDouble());
  if (const auto c = next(); !c.isNull()) row.set_best_test_accuracy(c.getDouble());
  if (const auto c = next(); !c.isNull()) row.set_wall_seconds(c.getDouble());
  if (const auto c = next(); !c.isNull()) row.set_error(c.getString());
  if (const auto c = next(); !c.isNull()) row.set_train_correct(c.getInt64());
  if (const auto c = next(); !c.isNull()) row.set_train_total(c.getInt64());
  if (const auto c = next(); !c.isNull()) row.set_test_correct(c.getInt64());
  if (const auto c = next(); !c.isNull()) row.set_test_total(c.getInt64());
  row.set_trained(next().getInt() != 0);
  row.set_configuration_id(next().getInt64());
  if (const auto c = next(); !c.isNull()) row.set_train_loss(c.getDouble());
  if (const auto c = next(); !c.isNull()) row.set_test_loss(c.getDouble());
  row.set_diverged(next().getInt() != 0);
  if (const auto c = next(); !c.isNull()) row.set_warning(c.getString());
  if (i < query.getColumnCount()) row.set_spec_json(next().getString());
  return row;
}

// Adds the templates of the configurations that the rows of `response` name.
void AddConfigurations(SQLite::Database& db, v1::ListJobsResponse& response) {
  SQLite::Statement query(db, "SELECT template FROM configurations WHERE configuration_id = ?");
  std::set<std::int64_t> there;
  for (const v1::JobRow& row : response.jobs()) {
    if (!there.insert(row.configuration_id()).second) continue;
    query.reset();
    query.bind(1, row.configuration_id());
    if (!query.executeStep()) continue;
    v1::Configuration& configuration = *response.add_configurations();
    configuration.set_configuration_id(row.configuration_id());
    configuration.set_spec_template(query.getColumn(0).getString());
  }
}

bool HasAnalysis(SQLite::Statement& query, std::int64_t job_id, const v1::Analysis& wanted) {
  query.reset();
  query.bind(1, job_id);
  query.bind(2, wanted.name());
  query.bind(3, wanted.version());
  query.bind(4, wanted.parameters_json());
  return query.executeStep();
}

}  // namespace

absl::StatusOr<v1::ListJobsResponse> QueryJobs(SQLite::Database& db,
                                               const v1::ListJobsRequest& request) {
  absl::StatusOr<int> limit = PageLimit(request.page());
  if (!limit.ok()) return limit.status();
  std::int64_t after = 0;
  if (!request.page().after().empty() && !ParseNumber(request.page().after(), &after)) {
    return absl::InvalidArgumentError(
        Concat("page position \"", request.page().after(), "\" is not one of an answer"));
  }
  absl::StatusOr<Expression> where = Compile(db, request.filter());
  if (!where.ok()) return where.status();
  SQLite::Statement query(
      db, Concat("SELECT ", kJobColumns, request.specs_apart() ? "" : ", j.spec_json",
                 " FROM v_jobs AS j WHERE j.job_id > ? AND ", where->sql,
                 " ORDER BY j.job_id LIMIT ?"));
  query.bind(1, after);
  BindAll(query, where->binds, 2);
  // One more row shows whether there is a next page.
  query.bind(2 + static_cast<int>(where->binds.size()), *limit + 1);
  v1::ListJobsResponse response;
  while (query.executeStep()) {
    if (response.jobs_size() == *limit) {
      response.set_next(Concat(response.jobs(*limit - 1).job_id()));
      break;
    }
    *response.add_jobs() = ReadJob(query);
  }
  if (request.specs_apart()) AddConfigurations(db, response);
  return response;
}

std::map<std::string, StoredJob> QueryKeys(SQLite::Database& db,
                                           const std::vector<std::string>& keys,
                                           const std::vector<v1::Analysis>& analyses) {
  std::map<std::string, StoredJob> found;
  SQLite::Statement query(db, Concat("SELECT ", kJobColumns, " FROM v_jobs AS j WHERE j.key = ?"));
  SQLite::Statement analysis(db,
                             "SELECT 1 FROM v_analyses WHERE job_id = ? AND name = ? AND "
                             "version = ? AND parameters_json = ?");
  SQLite::Statement weights(
      db, "SELECT 1 FROM v_artifacts WHERE job_id = ? AND name = 'weights.safetensors'");
  for (const std::string& key : keys) {
    query.reset();
    query.bind(1, key);
    if (!query.executeStep()) continue;
    const v1::JobRow row = ReadJob(query);
    StoredJob& job = found[key];
    job.state = row.state();
    if (row.state() != v1::JOB_STATE_SUCCEEDED) continue;
    for (const v1::Analysis& wanted : analyses)
      job.lacks_analyses |= !HasAnalysis(analysis, row.job_id(), wanted);
    weights.reset();
    weights.bind(1, row.job_id());
    job.has_weights = weights.executeStep();
  }
  return found;
}

}  // namespace pelab::db
