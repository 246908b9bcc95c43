// What a pelab database file says of itself.
#pragma once

#include <cstdint>

namespace pelab::db {

// PRAGMA application_id: "PELB". A file with another one is not a pelab database.
inline constexpr std::int32_t kApplicationId = 0x50454C42;
// PRAGMA user_version of the newest migration (migrations/0001_init.sql is 1).
inline constexpr int kSchemaVersion = 13;

// Payload of the FAILED_PRECONDITION of a file that an older pelab wrote: a coordinator migrates it.
inline constexpr char kOlderSchemaPayload[] = "pelab.older_schema";

}  // namespace pelab::db
