// Compiles a JobFilter to SQL over JobsOf(filter) (as `j`). Internal to core/db; call inside
// Connection::Read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/db/connection.h"
#include "core/db/raw_statement.h"
#include "core/db/read/conditions.h"
#include "pelab/v1/results.pb.h"

namespace pelab::db {

// Finds a sweep's number. `sweep` is the number in decimal or a name (then the newest sweep with
// it). NOT_FOUND.
absl::StatusOr<std::int64_t> FindSweep(Connection& db, const std::string& sweep);

// Finds the number of a job of any generation. `job` is the number, or a prefix of at least 6
// digits of the job's key (then the generation that v_jobs shows). NOT_FOUND; INVALID_ARGUMENT for
// a prefix that is too short or fits several keys.
absl::StatusOr<std::int64_t> FindJob(Connection& db, const std::string& job);

// Two ways to test whether a job belongs to a sweep. kInList builds a list of the sweep's jobs
// first, for a query over all jobs. kLookedUp looks each job up in indexes, for a query over few
// jobs.
enum class SweepTest { kInList, kLookedUp };

// The rows that a JobFilter selects from: v_jobs, or all jobs with the same columns if the filter
// wants a sweep's own jobs, which v_jobs may not show.
std::string_view JobsOf(const v1::JobFilter& filter);

// Always returns a valid expression ("1" for an empty filter).
absl::StatusOr<Expression> Compile(Connection& db, const v1::JobFilter& filter,
                                   SweepTest sweep_test = SweepTest::kInList);

// The jobs whose numbers are from `first` to before `end`, and the test of the sweep for them.
struct JobRange {
  std::int64_t first = 0;
  std::int64_t end = 0;
  SweepTest test = SweepTest::kInList;
};

// The ranges of a page that begins at job `first`, to be read in their order. Building the list of
// the sweep's jobs costs time for all of them on every page. The numbers of a sweep's jobs are
// close together, so a page among them first looks up as many numbers as the sweep has cells. The
// list is built only if these do not fill the page.
absl::StatusOr<std::vector<JobRange>> RangesFrom(Connection& db, const v1::JobFilter& filter,
                                                 std::int64_t first);

// The SQL of the jobs of a range, ascending, and its parameters. `where`: of Compile, with the
// range's test.
std::string SelectJobs(std::string_view columns, const v1::JobFilter& filter,
                       const Expression& where);
void BindRange(const JobRange& range, const Expression& where, RawStatement& query);

// Calls `visit` with the numbers of the jobs that `filter` selects, ascending from `first`, until
// `visit` returns false.
absl::Status ForEachJob(Connection& db, const v1::JobFilter& filter, std::int64_t first,
                        const std::function<bool(std::int64_t)>& visit);

// A page of a list ends when its rows contain this much text (a page of jobs: kMaxJobsTextBytes); a
// single row may have more.
inline constexpr std::size_t kMaxTextBytes = 1 << 20;

// The page's size, kDefaultPage for 0. INVALID_ARGUMENT if it is not from 1 to kMaxPage.
absl::StatusOr<int> PageLimit(const v1::Page& page);

}  // namespace pelab::db
