// A database file that nobody serves, as a data source.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client/source/data_source.h"

namespace pelab::client {

// Opens the file for reading. Errors are those of db::Reader::Open, but INTERNAL in place of
// UNAVAILABLE.
absl::StatusOr<std::unique_ptr<DataSource>> OpenFile(const std::string& path);

}  // namespace pelab::client
