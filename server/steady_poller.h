// A thread that always waits for network events. gRPC's own threads for the callback API stop
// polling for 100 ms after each second in which none of them had anything to do (seen in gRPC 1.51,
// src/cpp/common/completion_queue_cc.cc; no other thread takes over). Without this class, a
// connection or call that arrived then would wait for up to 100 ms. This thread polls on behalf of
// all of them and has no work of its own.
#pragma once

#include <grpcpp/completion_queue.h>

#include <thread>

namespace pelab {

class SteadyPoller {
 public:
  SteadyPoller();
  ~SteadyPoller();

 private:
  grpc::CompletionQueue queue_;  // nothing is ever put into this queue
  std::thread thread_;
};

}  // namespace pelab
