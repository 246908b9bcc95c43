#include "worker/agent/metrics_server.h"

#include <httplib.h>
#include <sys/socket.h>

#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/mutex.h"
#include "core/metrics/scrape.h"

namespace pelab::agent {
namespace {

constexpr std::size_t kMetricsThreads = 4;
constexpr time_t kMetricsSeconds = 2;  // for a client to send its request, or to take its answer

void SetUpMetrics(httplib::Server& server, std::function<std::string()> text) {
  // The default options of httplib let two programs share a port.
  server.set_socket_options([](socket_t fd) {
    const int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  });
  server.set_read_timeout(kMetricsSeconds);
  server.set_write_timeout(kMetricsSeconds);
  server.set_keep_alive_timeout(kMetricsSeconds);
  server.set_payload_max_length(0);
  server.Get("/metrics", [text = std::move(text)](const auto& request, auto& response) {
    if (!request.params.empty()) {
      response.status = 400;
      response.set_content("/metrics has no parameters\n", "text/plain");
      return;
    }
    response.set_content(text(), metrics::kContentType);
  });
  server.set_error_handler([](const auto&, auto& response) {
    if (response.status == 404) response.set_content("only /metrics is served\n", "text/plain");
  });
}

}  // namespace

struct MetricsServer::Parts {
  httplib::Server server;
  Notification serving;
  std::thread thread;
};

absl::Status CheckMetricsAddress(const rpc::Address& address, bool insecure) {
  if (address.is_unix) {
    return absl::InvalidArgumentError(
        absl::StrCat("--metrics ", address.ToString(), " is a socket file; allowed: HOST:PORT"));
  }
  if (address.IsLocal() || insecure) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--metrics ", address.ToString(),
      " can be reached from other machines, and metrics have neither TLS nor a password; allowed: "
      "a loopback address, or --insecure to show them to anybody"));
}

MetricsServer::MetricsServer(std::unique_ptr<Parts> parts, std::string url)
    : parts_(std::move(parts)), url_(std::move(url)) {}

absl::StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::Start(
    const rpc::Address& address, std::function<std::string()> text) {
  auto parts = std::make_unique<Parts>();
  httplib::Server& server = parts->server;
  SetUpMetrics(server, std::move(text));
  rpc::Address bound = address;
  if (address.port == 0) {
    bound.port = server.bind_to_any_port(address.host);
  } else if (!server.bind_to_port(address.host, address.port)) {
    bound.port = -1;
  }
  if (bound.port <= 0) {
    return absl::UnavailableError(absl::StrCat("--metrics: cannot listen on ", address.ToString(),
                                               "; another program may listen there"));
  }
  server.new_task_queue = [serving = &parts->serving] {
    serving->Notify();
    return new httplib::ThreadPool(kMetricsThreads);
  };
  parts->thread = std::thread([&server] { server.listen_after_bind(); });
  parts->serving.Wait();  // httplib cannot be stopped before it serves
  return std::unique_ptr<MetricsServer>(
      new MetricsServer(std::move(parts), absl::StrCat("http://", bound.ToString(), "/metrics")));
}

MetricsServer::~MetricsServer() {
  parts_->server.stop();
  parts_->thread.join();
}

}  // namespace pelab::agent
