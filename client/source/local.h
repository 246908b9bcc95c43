// A database file that nobody serves.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client/source/data_source.h"

namespace pelab::client {

// The errors of db::Reader::Open.
absl::StatusOr<std::unique_ptr<DataSource>> OpenFile(const std::string& path);

}  // namespace pelab::client
