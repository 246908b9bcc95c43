// Claim sheets as they are transmitted and stored: the text of a sheet and that of its sweep in, a
// bound sheet or typed violations out. Pure: thread-safe.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "core/claims/binding.h"

namespace pelab::rpc {

// `sweep_document` is not read if the sheet has its sweep inline. INVALID_ARGUMENT with
// v1::Violations (core/rpc/status.h) if one of them is wrong.
absl::StatusOr<claims::BoundSheet> BindSheetDocument(const std::string& document,
                                                     const std::string& sweep_document);

}  // namespace pelab::rpc
