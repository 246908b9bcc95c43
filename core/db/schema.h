// Marks by which pelab recognizes a database file and its schema version.
#pragma once

#include <cstdint>

namespace pelab::db {

// PRAGMA application_id: "PELB". A file with another id is not a pelab database.
inline constexpr std::int32_t kApplicationId = 0x50454C42;
// PRAGMA user_version of the newest migration (migrations/0001_init.sql is 1).
inline constexpr int kSchemaVersion = 13;

// Payload of the FAILED_PRECONDITION for a file with an older schema, which a coordinator would
// migrate.
inline constexpr char kOlderSchemaPayload[] = "pelab.older_schema";

}  // namespace pelab::db
