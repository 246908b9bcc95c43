// The calls that are open: each is ended once its principal may not make it any more, and a
// principal has only so many streams. Has a thread.
#pragma once

#include <grpcpp/support/server_interceptor.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "core/base/mutex.h"

namespace pelab::access {

// Thread-safe.
class OpenCalls {
 public:
  // The name of the principal that makes a call, as of now; nullopt: it may not be made any more.
  // Called with the context of an open call.
  using Holder = std::function<std::optional<std::string>(const grpc::ServerContextBase&)>;

  // `tick` is called about once a second, on the object's thread.
  OpenCalls(Holder holder, std::function<void()> tick);
  ~OpenCalls();  // all calls must have ended

  // For grpc::ServerBuilder. Calls of a single answer are soon over and are not watched.
  std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> Factory();

  // How many streams the principal has open.
  int StreamsOf(const std::string& principal);

 private:
  class Call;
  class Maker;

  void Run();
  void EndThoseThatMayNot();

  const Holder holder_;
  const std::function<void()> tick_;
  Mutex mutex_;
  std::set<Call*> calls_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, int> streams_ ABSL_GUARDED_BY(mutex_);
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace pelab::access
