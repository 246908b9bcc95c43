#include "worker/agent/metrics_server.h"

#include <httplib.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/http/limited_server.h"
#include "core/metrics/scrape.h"

namespace pelab::agent {
namespace {

constexpr std::size_t kMetricsThreads = 16;
constexpr std::size_t kWaitingConnections = 64;

void SetUpMetrics(httplib::Server& server, std::function<std::string()> text) {
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
  http::LimitedServer server{kMetricsThreads, kWaitingConnections};
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
  SetUpMetrics(parts->server, std::move(text));
  rpc::Address bound = address;
  const absl::StatusOr<int> port = parts->server.Listen(address);
  if (!port.ok()) {
    return absl::UnavailableError(
        absl::StrCat("--metrics: ", port.status().message(), "; another program may listen there"));
  }
  bound.port = *port;
  parts->server.Start();
  return std::unique_ptr<MetricsServer>(
      new MetricsServer(std::move(parts), absl::StrCat("http://", bound.ToString(), "/metrics")));
}

MetricsServer::~MetricsServer() = default;

}  // namespace pelab::agent
