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
  std::string tls_cert_file;  // PEM, with the chain; if both files are set: TLS
  std::string tls_key_file;   // PEM
  std::string token_file;     // the token that every call must carry; only over TLS
  bool insecure = false;      // allows plain connections that other machines can make
};

struct ClientSecurity {
  bool tls = false;         // use TLS on a local address too
  std::string tls_ca_file;  // PEM: authorities to trust instead of the system's; implies tls
  // File with the token, which is sent as "authorization: Bearer TOKEN", only over TLS. Empty: the
  // token is the environment variable PELAB_TOKEN. If that is not set, no token is sent.
  std::string token_file;
  bool insecure = false;  // allows a plain connection to an address that is not local
};

// INVALID_ARGUMENT says which flags are missing or contradict each other, or why the certificate
// and its key cannot be used; NOT_FOUND and similar errors name the file. The server rejects calls
// without the right token with UNAUTHENTICATED before any service sees them. It notices within two
// seconds that the certificate, its key or the token was replaced; connections that exist go on,
// and each of their calls needs the new token.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeServerCredentials(
    const ServerSecurity& security, const Address& address);
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> MakeChannelCredentials(
    const ClientSecurity& security, const Address& address);

// Sets message limits and keepalive that match the channels of channel.h.
void ConfigureServer(grpc::ServerBuilder& builder);

}  // namespace pelab::rpc
