// Registering a claim sheet: what is stored of it, and why it cannot be. Not thread-safe, like the
// reader.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/db/read/reader.h"
#include "pelab/v1/claims.pb.h"
#include "server/store/sheet_values.h"

namespace pelab::settle {

// The write that registers the sheet for `owner`. Without slots in the request, rounds are made for
// the slots of the workers that are online. INVALID_ARGUMENT, mostly with v1::Violations, if the
// sheet is wrong or its sweep does not give what its claims need.
absl::StatusOr<store::RegisterSheet> RegistrationOf(const v1::RegisterSheetRequest& request,
                                                    const std::string& owner, std::int64_t now,
                                                    db::Reader& reader);

// Why the store did not register the sheet: ALREADY_EXISTS if another one has its name,
// FAILED_PRECONDITION if there are too few seeds.
absl::Status CheckRegistered(const std::string& name, std::int64_t max_seeds,
                             const store::SheetRegistered& registered);

}  // namespace pelab::settle
