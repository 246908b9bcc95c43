// pelab-worker: the daemon on each host that trains.
#pragma once

namespace pelab::agent {

// RunWorker is all of main. It returns the exit status: 0 after a request to end, 2 if the command
// line is wrong or cannot be obeyed, 1 after other errors. It may be called once, before
// other threads exist.
int RunWorker(int argc, char** argv);

}  // namespace pelab::agent
