// The coordinator's own pages and JSON API over HTTP: reads only, and never through the writer. It
// listens plainly, without a password: on loopback, or where its owner says that anybody may look.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/rpc/address.h"
#include "server/http/api.h"

namespace pelab::http {

struct HttpOptions {
  rpc::Address listen;             // HOST:PORT; port 0: any
  std::vector<std::string> hosts;  // further names under which the pages are asked for
  std::string database;
};

// INVALID_ARGUMENT where other machines can reach the address and `insecure` does not say that they
// may, or where it is no HOST:PORT.
absl::Status CheckHttpAddress(const rpc::Address& address, bool insecure);

// How many listen to events at once; further ones are answered 503.
inline constexpr std::size_t kMostStreams = 64;

class HttpServer {
 public:
  // Listens, and serves until it is stopped. `sources` outlive it. An address that cannot be
  // listened on is an error in the system's words.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const HttpOptions& options,
                                                           const Sources& sources);
  ~HttpServer();  // as Stop

  // "http://127.0.0.1:7480", with the port that was chosen.
  const std::string& address() const { return address_; }
  // Ends streams at once, and what is under way within about two seconds.
  void Stop();

 private:
  struct Parts;
  explicit HttpServer(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
  std::string address_;
};

}  // namespace pelab::http
