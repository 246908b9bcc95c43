// Conversion of imported jobs and sweeps from messages to the store's values. Pure functions.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pelab/v1/transfer.pb.h"
#include "server/store/writes.h"

namespace pelab::service {

// Converts the job without its epochs, analyses and files. INVALID_ARGUMENT, with the reason, if
// the key does not belong to the spec or if the spec is malformed. The store checks the rest.
absl::StatusOr<store::ImportJob> ToImportJob(v1::ImportedJob job);
// INVALID_ARGUMENT if the hash is not a SHA-256, or if the name is empty or too long.
absl::Status CheckFile(const v1::ImportedFile& file);

// Converts the sweep without its cells. INVALID_ARGUMENT if a required field is missing or a
// setting is not JSON.
absl::StatusOr<store::ImportSweep> ToImportSweep(const v1::ImportedSweep& sweep);

}  // namespace pelab::service
