// Authentication and encryption. Unix sockets and loopback are plain by default; any other address
// needs TLS and a bearer token, or an explicit --insecure.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "core/rpc/address.h"

namespace grpc {
class ChannelCredentials;
class ServerBuilder;
class ServerCredentials;
}  // namespace grpc

namespace pelab::rpc {

struct ServerSecurity {
  std::string tls_cert_file;  // PEM, with the chain; together with tls_key_file: TLS
  std::string tls_key_file;   // PEM
  std::string token_file;     // the token that every call must carry; only over TLS
  bool insecure = false;      // plain connections although other machines can reach the address
};

struct ClientSecurity {
  bool tls = false;         // use TLS on a local address too
  std::string tls_ca_file;  // PEM: authorities to trust instead of the system's; implies tls
  // The token is sent as "authorization: Bearer TOKEN", only over TLS. If empty, the token is read
  // from the environment variable PELAB_TOKEN, if it is set.
  std::string token_file;
  bool insecure = false;  // plain connection although the address is not local
};

// INVALID_ARGUMENT says which flags are missing or contradict each other; NOT_FOUND and similar
// errors name the file. The server rejects calls without the right token with UNAUTHENTICATED
// before any service sees them.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeServerCredentials(
    const ServerSecurity& security, const Address& address);
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> MakeChannelCredentials(
    const ClientSecurity& security, const Address& address);

// Reads a token file: one line of 16 to 4,096 printable characters without spaces.
absl::StatusOr<std::string> ReadTokenFile(const std::string& path);

// Sets message limits and keepalive that match the channels of channel.h.
void ConfigureServer(grpc::ServerBuilder& builder);

}  // namespace pelab::rpc
