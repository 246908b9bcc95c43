// Principals as JSON and for people. Pure functions: thread-safe.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/terminal/style.h"
#include "core/render/json.h"
#include "pelab/v1/admin.pb.h"

namespace pelab::client {

// The names of the roles.
extern const std::vector<std::string> kRoleNames;

// "active", "disabled" or "expired" at the time `now`.
std::string PrincipalState(const v1::Principal& principal, absl::Time now);

// One flat object. Limits and times that do not exist are null; the share is 1 if none was set.
render::Json PrincipalJson(const v1::Principal& principal, absl::Time now);
const std::vector<std::string>& PrincipalColumns();

// A line for each principal.
std::string PrincipalTable(const std::vector<v1::Principal>& principals, absl::Time now,
                           const render::Style& style);
// A line for each property of one.
std::string PrincipalText(const v1::Principal& principal, absl::Time now,
                          const render::Style& style);

}  // namespace pelab::client
