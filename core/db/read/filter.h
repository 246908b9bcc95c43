// JobFilter -> SQL over v_jobs (as `j`). Internal to core/db; call inside Connection::Read.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/db/connection.h"
#include "core/db/read/conditions.h"
#include "pelab/v1/results.pb.h"

namespace pelab::db {

// The sweep's number. `sweep` is its number in decimal, or its name (the newest of that name).
// NotFound.
absl::StatusOr<std::int64_t> FindSweep(SQLite::Database& db, const std::string& sweep);

// The job's number, of any generation. `job` is its number, or a prefix of 6 or more digits of its
// key (then the generation that v_jobs shows). NotFound; InvalidArgument for a prefix that is too
// short or fits several keys.
absl::StatusOr<std::int64_t> FindJob(SQLite::Database& db, const std::string& job);

// How a job is found to be of a sweep: in a list of the sweep's jobs that is made first, for a query
// over all jobs; or each by two indexes, for one over few.
enum class SweepTest { kInList, kLookedUp };

// Always a valid expression ("1" where nothing is asked for).
absl::StatusOr<Expression> Compile(SQLite::Database& db, const v1::JobFilter& filter,
                                   SweepTest sweep_test = SweepTest::kInList);

// Calls `visit` with the numbers of the jobs that `filter` selects, from `first` on, ascending,
// until it returns false.
absl::Status ForEachJob(SQLite::Database& db, const v1::JobFilter& filter, std::int64_t first,
                        const std::function<bool(std::int64_t)>& visit);

// The page's size within the bounds; InvalidArgument.
absl::StatusOr<int> PageLimit(const v1::Page& page);

}  // namespace pelab::db
