// How a command finds its data source: --server, then PELAB_SERVER, then the lock file of --db,
// then (for reading) the database file itself.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client/options/options.h"
#include "client/source/data_source.h"

namespace pelab::client {

// Whether a coordinator was named or holds --db. If so, only that coordinator may change the
// database.
absl::StatusOr<bool> IsServed(const GlobalOptions& options);

// Connects to the coordinator. UNAVAILABLE if there is none.
absl::StatusOr<std::unique_ptr<Coordinator>> FindCoordinator(const GlobalOptions& options);

// Connects to the coordinator, or else opens the database file. NOT_FOUND if --db names a file that
// does not exist; UNAVAILABLE if nothing was named and neither a coordinator nor the default file
// exists.
absl::StatusOr<std::unique_ptr<DataSource>> FindSource(const GlobalOptions& options);

// Checks that a coordinator could open `path`: the file does not exist yet, is empty, or is a pelab
// database of this program's schema or an older one. Creates nothing.
absl::Status CheckDatabaseFile(const std::string& path);

}  // namespace pelab::client
