// A thread that always waits for what comes over the network. gRPC's own threads for the callback
// API look away for 100 ms after every second in which none of them had anything to do (as of gRPC
// 1.51, src/cpp/common/completion_queue_cc.cc, where the others that could look do not take over):
// whoever connected then, or called, waited for that long. This one stands by for all of them; it
// never has anything to do itself.
#pragma once

#include <grpcpp/completion_queue.h>

#include <thread>

namespace pelab {

class SteadyPoller {
 public:
  SteadyPoller();
  ~SteadyPoller();

 private:
  grpc::CompletionQueue queue_;  // nothing is ever put here
  std::thread thread_;
};

}  // namespace pelab
