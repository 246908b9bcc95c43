// An httplib server with limits, so that a client cannot take all threads, descriptors or memory.
// Only this file, connection.h and connection_pool.h deal with the sockets and threads of httplib;
// docs/adr/0033 lists them.
#pragma once

#include <httplib.h>

#include <cstddef>
#include <set>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "core/base/mutex.h"
#include "core/http/connection.h"
#include "core/http/connection_pool.h"
#include "core/rpc/address.h"

namespace pelab::http {

// For one thread; handlers run on the threads of connections.
class LimitedServer final : public httplib::Server {
 public:
  // Serves at most `threads` connections at once and keeps `waiting` more (ConnectionPool).
  LimitedServer(std::size_t threads, std::size_t waiting);
  ~LimitedServer() override;  // like Stop

  // Listens on the address and returns the port. Port 0 stands for any free port. UNAVAILABLE if
  // the address cannot be listened on.
  absl::StatusOr<int> Listen(const rpc::Address& address);
  // Begins to serve, on threads of its own. To be called once, after Listen. Throws
  // std::system_error if the system gives no thread.
  void Start();
  // Gives requests a moment to end, then breaks their connections.
  void Stop();

 private:
  bool process_and_close_socket(socket_t fd) override;
  template <typename Self>
  static bool Process(Self& self, Connection& connection, bool last, bool& closed);
  // Adds Content-Length: 0 to a request that has no body.
  static void SayBodyIsEmpty(httplib::Request& request);
  void BreakConnections();

  const std::size_t most_threads_;
  const std::size_t most_waiting_;
  Notification serving_;
  Notification ended_;
  ConnectionPool* pool_ = nullptr;  // owned by httplib; exists while connections are served
  Mutex mutex_;
  std::set<int> open_ ABSL_GUARDED_BY(mutex_);  // descriptors of the connections that are served
  std::thread thread_;
};

}  // namespace pelab::http
