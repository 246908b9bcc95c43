#include "server/service/preview.h"

#include <set>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/db/read/job_counts.h"
#include "core/rpc/sweep_document.h"

namespace pelab::service {
namespace {

constexpr std::size_t kKeysAtOnce = 500;

v1::PreviewJob ToPreview(const experiment::Cell& cell, v1::JobState stored) {
  v1::PreviewJob job;
  job.set_ordinal(cell.ordinal);
  job.set_key(cell.key);
  job.set_pe(cell.job.pe);
  job.set_pe_label(cell.pe_label);
  job.set_task(cell.task_label);
  job.set_protocol(cell.protocol_label);
  job.set_seed(cell.job.seed);
  job.set_spec_json(cell.canonical_json);
  job.set_stored_state(stored);
  return job;
}

}  // namespace

absl::Status PreviewCells(const grpc::ServerContext& context, Turns::Turn& turn, db::Reader& reader,
                          const experiment::Sweep& sweep, std::uint64_t from, bool fresh,
                          int max_jobs, v1::PreviewResponse& response) {
  const std::vector<v1::Analysis> analyses = rpc::AnalysesOf(sweep);
  std::set<std::string> seen;
  for (std::uint64_t next = from; next < sweep.cells();) {
    if (context.IsCancelled()) return absl::CancelledError("the client is gone");
    PELAB_RETURN_IF_ERROR(turn.Yield());
    std::vector<experiment::Cell> cells;
    std::vector<std::string> keys;
    for (; next < sweep.cells() && keys.size() < kKeysAtOnce; ++next) {
      auto cell = sweep.At(next);
      if (!cell || !seen.insert(cell->key).second) continue;
      keys.push_back(cell->key);
      cells.push_back(*std::move(cell));
    }
    PELAB_ASSIGN_OR_RETURN(const auto found, reader.FindKeys(keys, analyses));
    for (const experiment::Cell& cell : cells) {
      const auto job = found.find(cell.key);
      const db::StoredJob stored = job == found.end() ? db::StoredJob{} : job->second;
      db::CountJob(stored, fresh, *response.mutable_counts());
      if (response.jobs_size() < max_jobs) *response.add_jobs() = ToPreview(cell, stored.state);
    }
  }
  return absl::OkStatus();
}

}  // namespace pelab::service
