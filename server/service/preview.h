// What cells of a sweep would find in the database. Stores nothing.
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>

#include "absl/status/status.h"
#include "core/spec/sweep.h"
#include "core/views/reader.h"
#include "pelab/v1/sweeps.pb.h"

namespace pelab::service {

// Counts the cells from `from` on, each job once, and lists the first `max_jobs` of them. CANCELLED
// where the client is gone.
absl::Status PreviewCells(const grpc::ServerContext& context, views::Reader& reader,
                          const spec::Sweep& sweep, std::uint64_t from, bool fresh, int max_jobs,
                          v1::PreviewResponse& response);

}  // namespace pelab::service
