// The streams that are open: each is ended once its principal may not make it any more, and they
// are counted for each principal. Has a thread.
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
  ~OpenCalls();  // all streams must have ended

  // One open stream, from its begin until this object is destroyed. The context must outlive it.
  class Stream {
   public:
    Stream(OpenCalls& calls, const grpc::ServerContextBase& context);
    ~Stream();
    Stream(const Stream&) = delete;

   private:
    friend class OpenCalls;
    OpenCalls& calls_;
    const grpc::ServerContextBase& context_;
    const std::optional<std::string> principal_;
  };

  // For grpc::ServerBuilder: makes a Stream for each call with one stream. Calls with two
  // streams are left out, because each of their messages would take longer: their handlers make a
  // Stream themselves.
  std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> Factory();

  // How many streams the principal has open.
  int StreamsOf(const std::string& principal);

 private:
  void Run();
  void EndThoseThatMayNot() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Holder holder_;
  const std::function<void()> tick_;
  Mutex mutex_;
  std::set<const Stream*> open_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, int> streams_ ABSL_GUARDED_BY(mutex_);  // never 0
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace pelab::access
