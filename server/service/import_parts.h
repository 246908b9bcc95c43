// An imported job on its way from messages to the store. Pure functions.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pelab/v1/transfer.pb.h"
#include "server/store/writes.h"

namespace pelab::service {

// The job without what follows it. INVALID_ARGUMENT, with the reason, where the key is not that of
// the spec, or the spec is none.
absl::StatusOr<store::ImportJob> ToImportJob(const v1::ImportedJob& job);
store::ImportedAnalysis ToImportedAnalysis(const v1::ImportedAnalysis& analysis);
// INVALID_ARGUMENT for a hash that is none, or a name that is empty or too long.
absl::StatusOr<store::ImportedFile> ToImportedFile(const v1::ImportedFile& file);

// The sweep without its cells. INVALID_ARGUMENT.
absl::StatusOr<store::ImportSweep> ToImportSweep(const v1::ImportedSweep& sweep);

}  // namespace pelab::service
