// Claim sheets as they are transmitted and stored: the text of a sheet and that of its sweep in, a
// bound sheet or typed violations out. Pure: thread-safe.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "core/claims/binding.h"

namespace pelab::rpc {

// The document of the sheet's sweep. `given` is that of the file that the sheet names. For an
// inline sweep `given` may be empty, or be the inline sweep as JSON with the member `files` added,
// which has what files of own encodings and data declare. INVALID_ARGUMENT with v1::Violations
// (core/rpc/status.h) if it is another sweep.
absl::StatusOr<std::string> SweepDocumentOf(const claims::Sheet& sheet, const std::string& given);

// `sweep_document` is the `given` of SweepDocumentOf. INVALID_ARGUMENT with v1::Violations if one
// of the documents is wrong.
absl::StatusOr<claims::BoundSheet> BindSheetDocument(const std::string& document,
                                                     const std::string& sweep_document);

}  // namespace pelab::rpc
