// The coordinator's pages, JSON API and metrics over HTTP. Reads use database connections of their
// own, not the writer, and need no password: the address is loopback unless the owner allows others
// (--http-insecure or --insecure). Changes must be enabled and need a token.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/rpc/address.h"
#include "core/rpc/secrets.h"
#include "pelab/v1/sweeps.grpc.pb.h"
#include "server/http/api.h"

namespace pelab::http {

struct HttpOptions {
  rpc::Address listen;             // HOST:PORT; port 0: any free port
  std::vector<std::string> hosts;  // further host names that requests may use
  std::string database;
  // Clients that have this token may change sweeps; empty: nobody may.
  std::shared_ptr<rpc::TokenFile> write_token;
  v1::Sweeps::StubInterface* sweeps = nullptr;  // receives the changes; required with a token
};

// INVALID_ARGUMENT if other machines can reach the address and `insecure` is false, or if it is not
// of the form HOST:PORT.
absl::Status CheckHttpAddress(const rpc::Address& address, bool insecure);

// How many clients may listen to events at once. Further ones get status 503.
inline constexpr std::size_t kMostStreams = 64;

class HttpServer {
 public:
  // Starts listening and serves until stopped. `sources` must outlive the server. If the address
  // cannot be listened on, the error is the operating system's message.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const HttpOptions& options,
                                                           const Sources& sources);
  ~HttpServer();  // like Stop

  // "http://127.0.0.1:7480", with the actual port.
  const std::string& address() const { return address_; }
  // Ends event streams at once and other requests within about two seconds.
  void Stop();

 private:
  struct Parts;
  explicit HttpServer(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
  std::string address_;
};

}  // namespace pelab::http
