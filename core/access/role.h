// Roles and names of principals. Pure functions.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "pelab/v1/access.pb.h"

namespace pelab::access {

// "reader", "submitter", "operator", "worker" or "scaler"; "unknown" for a role of a newer version.
std::string NameOf(v1::Role role);
// nullopt if no role is called so.
std::optional<v1::Role> ParseRole(absl::string_view name);

// Whether a principal of this role may call a method that needs that.
bool Suffices(v1::Role role, const v1::Needs& needs);

// INVALID_ARGUMENT unless the name has 1 to 64 letters, digits and ._- and begins with a letter or
// a digit.
absl::Status CheckPrincipalName(absl::string_view name);

// INVALID_ARGUMENT unless the URI is "pelab://" and more, in at most 200 printable characters.
absl::Status CheckCertificateUri(absl::string_view uri);

}  // namespace pelab::access
