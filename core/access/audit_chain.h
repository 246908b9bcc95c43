// The chain of the audit table: each row's hash covers the row and the hash before it. So nobody
// can change, add or remove a row in the middle unseen. Rows at the end can be removed unseen;
// to notice that too, keep the newest hash elsewhere. Pure.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "pelab/v1/admin.pb.h"

namespace pelab::access {

// The hash before the first row.
inline constexpr absl::string_view kAuditStart =
    "0000000000000000000000000000000000000000000000000000000000000000";

// SHA-256, in hexadecimal, of the canonical JSON array of `previous` and the row's columns in their
// order, without sha256.
std::string AuditHash(absl::string_view previous, const v1::AuditRow& row);

}  // namespace pelab::access
