// How a trainer is told to end: by SIGTERM or SIGINT (stop at the next batch boundary, exit 75), or
// by the end of the worker that started it (end at once).
#pragma once

namespace pelab::trainer {

inline constexpr int kExitStopped = 75;  // EX_TEMPFAIL: may be started again

// Makes SIGTERM and SIGINT request a stop. Ignores SIGPIPE and SIGXFSZ, so that a lost reader or a
// file-size limit causes an error instead of ending the process.
void InstallStopSignals();

// Whether a stop was requested. Async-signal-safe, thread-safe.
bool StopRequested();

// Throws Stopped if a stop was requested. Call it between batches.
void ThrowIfStopped();

// Sets or clears the request, like a signal; for tests.
void SetStopRequested(bool requested);

// Starts a thread that reads `fd`, the reading end of a pipe whose writing end the worker holds. At
// end of file the worker is gone, and the thread ends the process at once with kExitStopped. Throws
// TrainerError(kIo) if `fd` is not open.
void EndWithParent(int fd);

}  // namespace pelab::trainer
