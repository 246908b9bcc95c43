// `pelab import` where nobody serves the database: with a coordinator brought along.
#pragma once

#include "absl/status/statusor.h"
#include "client/embedded/session.h"
#include "client/import/importer.h"
#include "client/options.h"

namespace pelab::client {

// As EmbeddedSession runs, with no worker. What came of it; CANCELLED after Ctrl-C.
absl::StatusOr<ImportReport> ImportEmbedded(
    const Context& context, Importer& importer,
    const std::function<void(std::uint64_t, std::uint64_t)>& progress);

}  // namespace pelab::client
