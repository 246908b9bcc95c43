// The JSON API (docs/api.md): turns requests below /api/v1/ into values. No sockets, no threads.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/clock.h"
#include "core/claims/summary.h"
#include "core/db/read/reader.h"
#include "core/render/json.h"
#include "pelab/v1/sweeps.pb.h"
#include "server/http/query.h"
#include "server/sched/scheduler.h"

namespace pelab::http {

// Sources beyond the database. All functions are thread-safe.
struct Sources {
  const Clock& clock;
  // Returns a number that changes with every commit.
  std::function<std::uint64_t()> version;
  // The next two ask sched::Scheduler. Their result is empty if it does not answer in time.
  std::function<std::string(std::int64_t sweep_id)> waiting_reason;
  std::function<std::vector<sched::WorkerStatus>()> workers;
  // How many jobs wait for slots like `slot`, and how many such slots are free. UNAVAILABLE if the
  // scheduler does not answer in time.
  std::function<absl::StatusOr<sched::Scheduler::Demand>(const sched::Slot& slot)> demand;
  // Summarizes the seeds of each claim of a sheet. FAILED_PRECONDITION if this version of pelab
  // refuses the sheet's document. Null: the answer has no summaries.
  std::function<absl::StatusOr<std::vector<claims::Summary>>(db::Reader& reader,
                                                             std::int64_t sheet_id)>
      summaries;
  // Returns the results of the seeds of a claim of the sheet (settle::SeedsOf). Null: there is no
  // such path.
  std::function<absl::StatusOr<render::Json>(db::Reader& reader, std::int64_t sheet_id,
                                             const std::string& claim)>
      seeds;
  // The text of GET /metrics. Null: there is no such page.
  std::function<std::string()> metrics;
};

// Answers requests on the given database connection. Used by one thread at a time; cheap to create.
class Api {
 public:
  Api(db::Reader& reader, const Sources& sources) : reader_(reader), sources_(sources) {}

  // `request.path` is the part after /api/v1. NOT_FOUND for an unknown address; otherwise the
  // errors of Query and db::Reader.
  absl::StatusOr<render::Json> Get(const Request& request);

  // These are also used by the event streams (topics.h).
  absl::StatusOr<render::Json> SweepRow(v1::Sweep sweep);
  struct RowPage {
    render::Json rows;
    std::string next;  // where the next page begins; empty: this is the last one
  };
  absl::StatusOr<RowPage> WorkerRows(const v1::Page& page);
  // Includes the names of the workers.
  absl::StatusOr<render::Json> AttemptRows(std::int64_t job_id);

 private:
  using Json = render::Json;
  using Answer = absl::StatusOr<Json>;
  struct Route;
  static const std::vector<Route>& Routes();

  // `id` is the variable part of the path.
  Answer Index(const std::string& id, const Query& query);
  Answer Sweeps(const std::string& id, const Query& query);
  Answer Sweep(const std::string& id, const Query& query);
  Answer Jobs(const std::string& id, const Query& query);
  Answer Cells(const std::string& id, const Query& query);
  Answer Limits(const std::string& id, const Query& query);
  Answer MeanCurves(const std::string& id, const Query& query);
  Answer MeanAblations(const std::string& id, const Query& query);
  Answer Deposits(const std::string& id, const Query& query);
  Answer Claims(const std::string& id, const Query& query);
  Answer Seeds(const std::string& id, const Query& query);
  Answer Job(const std::string& id, const Query& query);
  Answer Curve(const std::string& id, const Query& query);
  Answer Ablations(const std::string& id, const Query& query);
  Answer JobDeposits(const std::string& id, const Query& query);
  Answer Analyses(const std::string& id, const Query& query);
  Answer Log(const std::string& id, const Query& query);
  Answer Workers(const std::string& id, const Query& query);
  Answer Demand(const std::string& id, const Query& query);

  db::Reader& reader_;
  const Sources& sources_;
};

// A row of v_jobs as in lists: without its spec.
render::Json JobJson(const v1::JobRow& row);

}  // namespace pelab::http
