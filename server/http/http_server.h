// The coordinator's own pages and JSON API over HTTP. Reads go past the writer, and anybody may read:
// on loopback, or where its owner says so. Changes need a token, where they are allowed at all.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/rpc/address.h"
#include "pelab/v1/sweeps.grpc.pb.h"
#include "server/http/api.h"

namespace pelab::http {

struct HttpOptions {
  rpc::Address listen;             // HOST:PORT; port 0: any
  std::vector<std::string> hosts;  // further names under which the pages are asked for
  std::string database;
  std::string write_token;                      // who has it may change sweeps; empty: nobody may
  v1::Sweeps::StubInterface* sweeps = nullptr;  // where the changes go; needed with a token
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
