#include <cstdint>
#include <set>

#include "core/base/strings.h"
#include "core/db/raw_statement.h"
#include "core/db/read/filter.h"
#include "core/db/read/queries.h"
#include "core/db/row_columns.h"

namespace pelab::db {
namespace {

const RowColumns& JobColumns(bool with_spec) {
  static const auto& all = ColumnsOf<v1::JobRow>();
  static const auto& specless = *new RowColumns(v1::JobRow::descriptor(), {"spec_json"});
  return with_spec ? all : specless;
}

// A page of jobs ends when its rows and configurations contain this much text. It is more than in
// other lists, because every page selects the jobs of its sweep again, and less than a message.
constexpr std::size_t kMaxJobsTextBytes = 8 << 20;

// Adds the templates of the configurations that rows name, each once.
class Configurations {
 public:
  explicit Configurations(Connection& db)
      : query_(db, "SELECT template FROM configurations WHERE configuration_id = ?") {}

  // Returns the bytes of text that it added.
  std::size_t Add(std::int64_t id, v1::ListJobsResponse& response) {
    if (!there_.insert(id).second) return 0;
    query_.Reset();
    query_.Bind(1, id);
    if (!query_.Step()) return 0;
    v1::Configuration& configuration = *response.add_configurations();
    configuration.set_configuration_id(id);
    configuration.set_spec_template(query_.Text(0));
    return configuration.spec_template().size();
  }

 private:
  RawStatement query_;
  std::set<std::int64_t> there_;
};

bool HasAnalysis(RawStatement& query, std::int64_t job_id, const v1::Analysis& wanted) {
  query.Reset();
  query.Bind(1, job_id);
  query.Bind(2, wanted.name());
  query.Bind(3, std::int64_t{wanted.version()});
  query.Bind(4, wanted.parameters_json());
  return query.Step();
}

}  // namespace

absl::StatusOr<v1::ListJobsResponse> QueryJobs(Connection& db, const v1::ListJobsRequest& request) {
  absl::StatusOr<int> limit = PageLimit(request.page());
  if (!limit.ok()) return limit.status();
  std::int64_t after = 0;
  if (!request.page().after().empty() && !ParseNumber(request.page().after(), &after)) {
    return absl::InvalidArgumentError(
        Concat("page position \"", request.page().after(), "\" is not one of an answer"));
  }
  absl::StatusOr<Expression> where = Compile(db, request.filter());
  if (!where.ok()) return where.status();
  const RowColumns& columns = JobColumns(!request.specs_apart());
  RawStatement query(
      db, Concat("SELECT ", columns.sql(), " FROM ", JobsOf(request.filter()),
                 " AS j WHERE j.job_id > ? AND ", where->sql, " ORDER BY j.job_id LIMIT ?"));
  query.Bind(1, after);
  query.BindAll(where->binds, 2);
  // One more row shows whether there is a next page.
  query.Bind(2 + static_cast<int>(where->binds.size()), std::int64_t{*limit} + 1);
  v1::ListJobsResponse response;
  Configurations configurations(db);
  std::size_t text_bytes = 0;
  while (query.Step()) {
    if (response.jobs_size() == *limit || text_bytes >= kMaxJobsTextBytes) {
      response.set_next(Concat(response.jobs().rbegin()->job_id()));
      break;
    }
    v1::JobRow& job = *response.add_jobs();
    text_bytes += columns.Read(query, job);
    if (request.specs_apart()) text_bytes += configurations.Add(job.configuration_id(), response);
  }
  return response;
}

std::map<std::string, StoredJob> QueryKeys(Connection& db, const std::vector<std::string>& keys,
                                           const std::vector<v1::Analysis>& analyses) {
  std::map<std::string, StoredJob> found;
  const RowColumns& columns = JobColumns(/*with_spec=*/false);
  RawStatement query(db, Concat("SELECT ", columns.sql(), " FROM v_jobs WHERE key = ?"));
  RawStatement analysis(db,
                        "SELECT 1 FROM v_analyses WHERE job_id = ? AND name = ? AND "
                        "version = ? AND parameters_json = ?");
  RawStatement weights(
      db, "SELECT 1 FROM v_artifacts WHERE job_id = ? AND name = 'weights.safetensors'");
  for (const std::string& key : keys) {
    query.Reset();
    query.Bind(1, key);
    if (!query.Step()) continue;
    v1::JobRow row;
    columns.Read(query, row);
    StoredJob& job = found[key];
    job.state = row.state();
    if (row.state() != v1::JOB_STATE_SUCCEEDED) continue;
    for (const v1::Analysis& wanted : analyses)
      job.lacks_analyses |= !HasAnalysis(analysis, row.job_id(), wanted);
    weights.Reset();
    weights.Bind(1, row.job_id());
    job.has_weights = weights.Step();
  }
  return found;
}

}  // namespace pelab::db
