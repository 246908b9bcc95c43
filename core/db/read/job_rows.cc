#include <cstdint>
#include <limits>
#include <set>
#include <utility>
#include <vector>

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
// other lists, because a page may list the jobs of its sweep again, and less than a message.
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

// A page of jobs, filled from one range of them after the other.
class JobsPage {
 public:
  JobsPage(Connection& db, const v1::ListJobsRequest& request, int limit)
      : db_(db), request_(request), limit_(limit), configurations_(db) {}

  // Adds the jobs of the range until the page is full.
  absl::Status Add(const JobRange& range) {
    const absl::StatusOr<Expression> where = Compile(db_, request_.filter(), range.test);
    if (!where.ok()) return where.status();
    const RowColumns& columns = JobColumns(!request_.specs_apart());
    RawStatement query(db_, SelectJobs(columns.sql(), request_.filter(), *where));
    BindRange(range, *where, query);
    while (query.Step()) {
      if (response_.jobs_size() == limit_ || text_bytes_ >= kMaxJobsTextBytes) {
        response_.set_next(Concat(response_.jobs().rbegin()->job_id()));
        return absl::OkStatus();
      }
      v1::JobRow& job = *response_.add_jobs();
      text_bytes_ += columns.Read(query, job);
      if (request_.specs_apart()) {
        text_bytes_ += configurations_.Add(job.configuration_id(), response_);
      }
    }
    return absl::OkStatus();
  }
  // Whether there is a next page.
  bool full() const { return !response_.next().empty(); }
  v1::ListJobsResponse Take() { return std::move(response_); }

 private:
  Connection& db_;
  const v1::ListJobsRequest& request_;
  const int limit_;
  Configurations configurations_;
  v1::ListJobsResponse response_;
  std::size_t text_bytes_ = 0;
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
  const bool last = after == std::numeric_limits<std::int64_t>::max();
  const auto ranges = RangesFrom(db, request.filter(), last ? after : after + 1);
  if (!ranges.ok()) return ranges.status();
  JobsPage page(db, request, *limit);
  for (const JobRange& range : *ranges) {
    if (absl::Status status = page.Add(range); !status.ok()) return status;
    if (page.full()) break;
  }
  return page.Take();
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
