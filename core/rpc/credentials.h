// Authentication and encryption. Unix sockets and loopback are plain by default; any other address
// needs TLS, or an explicit --insecure.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "core/rpc/address.h"
#include "core/rpc/secrets.h"

namespace grpc {
class AuthMetadataProcessor;
class ChannelCredentials;
class ServerBuilder;
class ServerCredentials;
}  // namespace grpc

namespace pelab::rpc {

struct ServerSecurity {
  std::string tls_cert_file;       // PEM, with the chain; if both files are set: TLS
  std::string tls_key_file;        // PEM
  std::string token_file;          // a token with which everybody is an operator
  bool insecure = false;           // allows plain connections that other machines can make
  std::string tls_client_ca_file;  // PEM: authorities whose clients' certificates are accepted
};

struct ClientSecurity {
  bool tls = false;           // use TLS on a local address too
  std::string tls_ca_file;    // PEM: authorities to trust instead of the system's; implies tls
  std::string tls_cert_file;  // PEM: the client's own certificate, with the chain; implies tls
  std::string tls_key_file;   // PEM
  // File with the token, which is sent as "authorization: Bearer TOKEN", only over TLS or on this
  // machine. Empty: the token is the environment variable PELAB_TOKEN. If that is not set, no token
  // is sent.
  std::string token_file;
  bool insecure = false;  // allows a plain connection to an address that is not local
};

// INVALID_ARGUMENT says which flags are missing or contradict each other, or why the certificate
// and its key cannot be used; NOT_FOUND and similar errors name the file.
absl::Status CheckServerSecurity(const ServerSecurity& security, const Address& address);
// Whether calls over the address can show who makes them: by TLS, or because only this machine
// reaches it.
bool CanIdentify(const ServerSecurity& security, const Address& address);
// For flags that CheckServerSecurity accepts. The processor sees every call before its service
// does, if CanIdentify. The server notices within two
// seconds that the certificate, its key or the authorities of clients were replaced; connections
// that exist go on.
std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(
    const ServerSecurity& security, const Address& address,
    const std::shared_ptr<grpc::AuthMetadataProcessor>& processor);

// The channel's credentials, and the token that its calls carry (null: none). Errors are like those
// above. A token file that is replaced is read again within a second.
struct ChannelSecurity {
  std::shared_ptr<grpc::ChannelCredentials> credentials;
  std::shared_ptr<TokenFile> token;
};
absl::StatusOr<ChannelSecurity> MakeChannelSecurity(const ClientSecurity& security,
                                                    const Address& address);

// Sets message limits and keepalive that match the channels of channel.h.
void ConfigureServer(grpc::ServerBuilder& builder);

}  // namespace pelab::rpc
