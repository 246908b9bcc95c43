#include "core/http/limited_server.h"

#include <sys/socket.h>

#include <string>

#include "absl/cleanup/cleanup.h"
#include "core/base/strings.h"

namespace pelab::http {
namespace {

constexpr int kBacklog = 128;
constexpr int kKeepAliveRequests = 100;
constexpr absl::Duration kStopTime = absl::Seconds(1);

}  // namespace

LimitedServer::LimitedServer(std::size_t threads, std::size_t waiting)
    : most_threads_(threads), most_waiting_(waiting) {
  // The default options of httplib let two programs share a port.
  set_socket_options([](socket_t fd) {
    const int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  });
  set_tcp_nodelay(true);
}

LimitedServer::~LimitedServer() { Stop(); }

absl::StatusOr<int> LimitedServer::Listen(const rpc::Address& address) {
  int port = address.port;
  if (port == 0) {
    port = bind_to_any_port(address.host);
  } else if (!bind_to_port(address.host, port)) {
    port = -1;
  }
  if (port <= 0) return absl::UnavailableError(Concat("cannot listen on ", address.ToString()));
  // httplib lets 5 connections wait to be accepted. A single page with its charts may need more.
  ::listen(svr_sock_, kBacklog);
  return port;
}

void LimitedServer::Start() {
  pool_ = new ConnectionPool(most_threads_, most_waiting_);  // here its error reaches the caller
  new_task_queue = [this] {
    serving_.Notify();
    return pool_;
  };
  thread_ = std::thread([this] {
    listen_after_bind();
    serving_.Notify();
    ended_.Notify();
  });
  serving_.Wait();  // httplib cannot be stopped before it serves
}

void LimitedServer::Stop() {
  if (!thread_.joinable()) return;
  stop();
  while (!ended_.WaitFor(kStopTime)) BreakConnections();
  thread_.join();
}

// httplib cannot end connections, and would wait for clients that read or send slowly.
void LimitedServer::BreakConnections() {
  MutexLock lock(&mutex_);
  for (const int fd : open_) shutdown(fd, SHUT_RDWR);
}

// A request with neither Content-Length nor Transfer-Encoding has no body (RFC 9112, 6.3).
// httplib would read a body until the peer closes the connection, but the peer awaits an answer.
void LimitedServer::SayBodyIsEmpty(httplib::Request& request) {
  if (request.has_header("Content-Length") || request.has_header("Transfer-Encoding")) return;
  request.set_header("Content-Length", "0");
}

// From version 0.15 on, process_request takes the addresses of both ends; the local one is not
// used. This is a template, so that only the call that the installed version has is compiled.
template <typename Self>
bool LimitedServer::Process(Self& self, Connection& connection, bool last, bool& closed) {
  if constexpr (requires { self.process_request(connection, last, closed, SayBodyIsEmpty); }) {
    return self.process_request(connection, last, closed, SayBodyIsEmpty);
  } else {
    std::string remote;
    int port = 0;
    connection.get_remote_ip_and_port(remote, port);
    return self.process_request(connection, remote, port, std::string(), 0, last, closed,
                                SayBodyIsEmpty);
  }
}

// Like httplib's own implementation, but over a connection with limits.
bool LimitedServer::process_and_close_socket(socket_t fd) {
  Connection connection(
      fd, {}, [this] { return pool_->others_wait(); },
      [this] { return svr_sock_ == INVALID_SOCKET; });
  {
    MutexLock lock(&mutex_);
    open_.insert(fd);
  }
  // Runs before `connection` closes the descriptor, whose number is then free for other files.
  const absl::Cleanup forget = [this, fd] {
    MutexLock lock(&mutex_);
    open_.erase(fd);
  };
  bool ok = true;
  bool closed = false;
  for (int left = kKeepAliveRequests; ok && !closed && connection.AwaitRequest(); --left) {
    const bool last = left == 1 || !connection.HasNoBody();
    ok = Process(*this, connection, last, closed);
    closed = closed || last || connection.broken();
  }
  return ok;
}

}  // namespace pelab::http
