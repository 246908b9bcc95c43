// pelab-load: thousands of fake workers over real gRPC against their own pelab-server.
#pragma once

namespace pelab::load {

// RunLoad is all of main. It returns the exit status: 0, 1 where a figure is missing or a promise
// was broken, and one of CLI11 for a wrong command line.
int RunLoad(int argc, char** argv);

}  // namespace pelab::load
