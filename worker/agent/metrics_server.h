// A small HTTP server for GET /metrics. It has threads of its own, so that a scrape never waits for
// the session and the session never for a scrape.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/rpc/address.h"

namespace pelab::agent {

// INVALID_ARGUMENT if the address is not of the form HOST:PORT, or if other machines can reach it
// and `insecure` is false: the answers have neither TLS nor a password.
absl::Status CheckMetricsAddress(const rpc::Address& address, bool insecure);

class MetricsServer {
 public:
  // Serves what `text` returns, in Prometheus' text format. `text` is called on the server's
  // threads and must be thread-safe. Port 0: any free port. UNAVAILABLE if the address cannot be
  // listened on.
  static absl::StatusOr<std::unique_ptr<MetricsServer>> Start(const rpc::Address& address,
                                                              std::function<std::string()> text);
  // Ends requests that are under way within about two seconds.
  ~MetricsServer();

  // "http://127.0.0.1:7481/metrics", with the actual port.
  const std::string& url() const { return url_; }

 private:
  struct Parts;
  MetricsServer(std::unique_ptr<Parts> parts, std::string url);

  const std::unique_ptr<Parts> parts_;
  const std::string url_;
};

}  // namespace pelab::agent
