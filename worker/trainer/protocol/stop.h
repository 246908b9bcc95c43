// How a trainer is told to end: SIGTERM or SIGINT (stop at the next batch boundary, exit 75) and the death of its agent
// (end at once).
#pragma once

namespace pelab::trainer {

inline constexpr int kExitStopped = 75;  // EX_TEMPFAIL: may be started again

// Makes SIGTERM and SIGINT ask for a stop and ignores SIGPIPE and SIGXFSZ, so that a vanished reader or a file that may not
// grow is an error and not a death.
void InstallStopSignals();

// Whether a stop was asked for. Async-signal-safe, thread-safe.
bool StopRequested();

// Throws Stopped when a stop was asked for; called between batches.
void ThrowIfStopped();

// Sets or clears the request, as a signal would; for tests.
void SetStopRequested(bool requested);

// Starts a thread that reads `fd`, the reading end of a pipe whose writing end the agent holds, and ends the process
// with kExitStopped, wherever it is, when the agent is gone (end of file).
void EndWithParent(int fd);

}  // namespace pelab::trainer
