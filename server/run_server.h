// pelab-server: connects the coordinator to a command line, signals and a log.
#pragma once

namespace pelab {

// What main does. Returns the exit status: 1 if the coordinator could not start, 2 if the command
// line is wrong or asks for what cannot be. Call it once, before other threads exist.
int RunServer(int argc, char** argv);

}  // namespace pelab
