// The command line's limits: how long it waits, and how much it reads, sends, holds or prints at
// once. Widths of tables and drawings stand beside the code that draws them.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"

namespace pelab::client::limits {

// Calls to a coordinator.
inline constexpr absl::Duration kConnect = absl::Seconds(5);        // until it answers at all
inline constexpr absl::Duration kConnectBeside = absl::Seconds(2);  // for `run`, if it runs already
inline constexpr std::chrono::seconds kCall{30};                    // until a call has its answer
// between two tries while the principal makes too many calls
inline constexpr std::chrono::milliseconds kAfterTooManyCalls{250};
inline constexpr int kPageRows = 5000;  // rows of a page; far below the size of a message
// Jobs that one Analyze request names; the coordinator takes no more (server/limits.h)
inline constexpr int kJobsOfRequest = 10'000;
inline constexpr std::size_t kKeysLookedUp = 1000;  // keys that one call of a dry run looks up

// `pelab run` and `pelab settle`: the coordinator and the worker that they start.
// until the coordinator answers, or a worker is connected
inline constexpr absl::Duration kStart = absl::Seconds(30);
// How long a command waits for its own coordinator, which runs but does not answer.
inline constexpr absl::Duration kStandstill = absl::Minutes(10);
inline constexpr absl::Duration kStartStep = absl::Milliseconds(250);  // one attempt to connect
inline constexpr absl::Duration kStartPoll = absl::Milliseconds(50);   // between looks at the lock
// between looks at the sweep, the workers or the round
inline constexpr absl::Duration kRunPoll = absl::Milliseconds(50);
// How long the worker and the coordinator may take to end before they are killed. The sum is below
// 5 s, because Ctrl-C must end everything within 5 s.
inline constexpr absl::Duration kWorkerGrace = absl::Seconds(3);
inline constexpr absl::Duration kServerGrace = absl::Milliseconds(1500);
inline constexpr int kJoins = 20;                     // tries to go on after a coordinator was lost
inline constexpr std::size_t kQuotedLogLines = 5;     // lines of a log in an error
inline constexpr std::size_t kQuotedLogBytes = 4096;  // bytes read for these lines
// The longest TMPDIR, in bytes, in which a socket is made; /tmp replaces a longer one. The path of
// the socket then has at most 107 bytes, the system's limit.
inline constexpr std::size_t kSocketParentBytes = 60;

// `pelab import`.
inline constexpr std::size_t kImportKeys = 200;            // keys in one request
inline constexpr int kImportEpochs = 5000;                 // epochs in one message: at most 400 KB
inline constexpr int kImportCells = 2000;                  // cells in one message
inline constexpr std::uint64_t kImportProgressJobs = 100;  // jobs between two lines of progress
inline constexpr std::size_t kJobFileBytes = 1 << 20;      // the job of a recorded run
inline constexpr std::size_t kRunBytes = 256 << 20;        // the lines of a recorded run

// `pelab export`.
inline constexpr std::size_t kExportJobs = 100;   // jobs whose matrices are held at once
inline constexpr std::size_t kExportRows = 1000;  // rows of jobs.csv that are written at once
inline constexpr std::size_t kExportNamed = 40;   // unfinished jobs that its README.md lists
inline constexpr std::uint64_t kExportProgressRows =
    1'000'000;  // rows between two lines of progress

// Waiting and progress on a terminal.
inline constexpr absl::Duration kAnalysisPoll = absl::Milliseconds(200);
inline constexpr double kGridSeconds = 0.5;  // between two readings of a grid (several calls)
inline constexpr double kPlainSeconds = 10;  // between two lines of progress without a terminal
// Jobs of a sweep that is drawn as a grid; a larger grid would not fit on any screen
inline constexpr std::uint64_t kGridJobs = 1000;
// Jobs whose curves are requested by job number; for more jobs, the whole sweep's are requested
inline constexpr int kCurvesByJob = 64;

// Lookups that complete an answer, and the lengths of lists in it.
// A table of at most so many jobs also has a line that says which software and devices trained them
inline constexpr std::size_t kComputedByJobs = 10'000;
// Compared jobs whose analyses are requested by job number; for more, all jobs' are requested
inline constexpr std::size_t kComparedByJob = 500;
// `logs` compares its job with the other jobs of a sweep: how many newest sweeps it looks at, and
// the most jobs of such a sweep
inline constexpr int kNeighborSweeps = 20;
inline constexpr std::uint64_t kNeighborJobs = 10'000;
// Jobs that lack an analysis and whose errors are read, with a call each
inline constexpr std::size_t kErrorsLookedUp = 100;
inline constexpr std::size_t kErrorsShown = 20;  // jobs whose errors are printed
inline constexpr std::size_t kDryRunRows = 30;   // jobs that `--dry-run` lists
inline constexpr int kAuditTableRows = 1000;     // rows of one table of `audit`; another follows

// Points of all single seeds' curves in a report together. --all-seeds removes the limit.
inline constexpr std::size_t kReportSeedPoints = 400'000;

}  // namespace pelab::client::limits
