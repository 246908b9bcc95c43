#include "client/source/data_source.h"

#include <utility>

namespace pelab::client {

absl::StatusOr<results::JobList> DataSource::Jobs(const v1::JobFilter& filter) {
  results::JobList jobs;
  const absl::Status status = ReadJobs(filter, [&](v1::ListJobsResponse& page) {
    jobs.Add(std::move(page));
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return jobs;
}

}  // namespace pelab::client
