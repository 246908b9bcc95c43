// For a process that adopts orphans (PR_SET_CHILD_SUBREAPER) and therefore has to reap them.
#pragma once

#include <sys/types.h>

namespace pelab {

// Reaps the child `pid` if it has ended. Does nothing to children of this program's Process
// objects, which reap themselves. Thread-safe.
void ReapOrphan(pid_t pid);

}  // namespace pelab
