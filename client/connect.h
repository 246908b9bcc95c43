// How a command finds what it reads from: --server, then PELAB_SERVER, then the lock file of --db,
// then (for reading) the file itself.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client/options.h"
#include "client/source/data_source.h"

namespace pelab::client {

// Whether a coordinator is named or holds --db: then what is done to the database is for it to do.
absl::StatusOr<bool> IsServed(const GlobalOptions& options);

// A coordinator. UNAVAILABLE where there is none.
absl::StatusOr<std::unique_ptr<Coordinator>> FindCoordinator(const GlobalOptions& options);

// A coordinator, or else the file. NOT_FOUND where --db names a file that is not there; UNAVAILABLE
// where nothing was named and nothing is there.
absl::StatusOr<std::unique_ptr<DataSource>> FindSource(const GlobalOptions& options);

// Whether `path` can be a database that a coordinator opens: it is not there yet, or is one of
// pelab's, not newer than this program. Makes nothing.
absl::Status CheckDatabaseFile(const std::string& path);

}  // namespace pelab::client
