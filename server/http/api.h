// The JSON API (docs/api.md): what is asked for under /api/v1/, as values. No sockets, no threads.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/clock.h"
#include "core/db/read/reader.h"
#include "core/render/json.h"
#include "pelab/v1/sweeps.pb.h"
#include "server/http/query.h"
#include "server/sched/scheduler.h"

namespace pelab::http {

// What is not in the database. All thread-safe.
struct Sources {
  const Clock& clock;
  // A number that changes with every commit.
  std::function<std::uint64_t()> version;
  // As sched::Scheduler's; empty where it does not answer.
  std::function<std::string(std::int64_t sweep_id)> waiting_reason;
  std::function<std::vector<sched::WorkerStanding>()> workers;
};

// Answers on the connection that it is given. One thread at a time; cheap to make.
class Api {
 public:
  Api(db::Reader& reader, const Sources& sources) : reader_(reader), sources_(sources) {}

  // `request.path` is what follows /api/v1. NOT_FOUND for an address that there is not, else the
  // errors of Query and db::Reader.
  absl::StatusOr<render::Json> Get(const Request& request);

  // What the streams of events tell too (topics.h).
  absl::StatusOr<render::Json> SweepRow(v1::Sweep sweep);
  absl::StatusOr<render::Json> WorkerRows();
  // With the names of their workers.
  absl::StatusOr<render::Json> AttemptRows(std::int64_t job_id);

 private:
  using Json = render::Json;
  using Answer = absl::StatusOr<Json>;
  struct Route;
  static const std::vector<Route>& Routes();

  // `id` is the path's variable part.
  Answer Index(const std::string& id, const Query& query);
  Answer Sweeps(const std::string& id, const Query& query);
  Answer Sweep(const std::string& id, const Query& query);
  Answer Jobs(const std::string& id, const Query& query);
  Answer Cells(const std::string& id, const Query& query);
  Answer MeanCurves(const std::string& id, const Query& query);
  Answer MeanAblations(const std::string& id, const Query& query);
  Answer Deposits(const std::string& id, const Query& query);
  Answer Job(const std::string& id, const Query& query);
  Answer Curve(const std::string& id, const Query& query);
  Answer Ablations(const std::string& id, const Query& query);
  Answer JobDeposits(const std::string& id, const Query& query);
  Answer Analyses(const std::string& id, const Query& query);
  Answer Log(const std::string& id, const Query& query);
  Answer Workers(const std::string& id, const Query& query);

  db::Reader& reader_;
  const Sources& sources_;
};

// A row of v_jobs as lists have it: without its spec.
render::Json JobJson(const v1::JobRow& row);

}  // namespace pelab::http
