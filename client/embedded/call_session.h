// `pelab import` into a database that nobody serves: starts a coordinator of its own.
#pragma once

#include "absl/status/statusor.h"
#include "client/embedded/session.h"
#include "client/import/importer.h"
#include "client/options/options.h"

namespace pelab::client {

// Runs as an EmbeddedSession, without a worker. Returns what was imported; CANCELLED after Ctrl-C.
absl::StatusOr<ImportReport> ImportEmbedded(
    const Context& context, Importer& importer,
    const std::function<void(std::uint64_t, std::uint64_t)>& progress);

}  // namespace pelab::client
