// For a process that adopts orphans (PR_SET_CHILD_SUBREAPER): their end must be taken note of.
#pragma once

#include <sys/types.h>

namespace pelab {

// Reaps the child `pid` if it has ended and is none of this program's Process objects, which do that
// themselves. Thread-safe.
void ReapOrphan(pid_t pid);

}  // namespace pelab
