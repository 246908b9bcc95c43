// Compares cells of a sweep with the jobs in the database. Stores nothing.
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>

#include "absl/status/status.h"
#include "core/db/read/reader.h"
#include "core/experiment/sweep.h"
#include "pelab/v1/sweeps.pb.h"
#include "server/turns.h"

namespace pelab::service {

// Counts the cells from `from` on, each job once, and lists the first `max_jobs` of them. Lets
// others take turns now and then. CANCELLED if the client is gone.
absl::Status PreviewCells(const grpc::ServerContext& context, Turns::Turn& turn, db::Reader& reader,
                          const experiment::Sweep& sweep, std::uint64_t from, bool fresh,
                          int max_jobs, v1::PreviewResponse& response);

}  // namespace pelab::service
