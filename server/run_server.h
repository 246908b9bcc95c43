// pelab-server: connects the coordinator to a command line, signals and a log.
#pragma once

namespace pelab {

// RunServer is all of main. It returns the exit status: 0 after a request to end, 2 if the command
// line is wrong or cannot be obeyed, 1 after other errors. It may be called once, before
// other threads exist.
int RunServer(int argc, char** argv);

}  // namespace pelab
