#include "core/rpc/credentials.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/security/auth_metadata_processor.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <openssl/crypto.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/status.h"
#include "core/rpc/channel.h"
#include "core/rpc/token_variable.h"

namespace pelab::rpc {
namespace {

constexpr std::size_t kMaxPemBytes = 1 << 20;
constexpr std::size_t kMinTokenBytes = 16;
constexpr std::size_t kMaxTokenBytes = 4096;

// The only place that checks a call's token. The comparison takes the same time for a wrong token
// of the right length as for the right one.
class TokenProcessor final : public grpc::AuthMetadataProcessor {
 public:
  explicit TokenProcessor(absl::string_view token) : expected_(absl::StrCat("Bearer ", token)) {}

  bool IsBlocking() const override { return false; }

  grpc::Status Process(const InputMetadata& metadata, grpc::AuthContext*, OutputMetadata* consumed,
                       OutputMetadata*) override {
    const auto found = metadata.find("authorization");
    if (found == metadata.end()) {
      return {grpc::StatusCode::UNAUTHENTICATED,
              "this coordinator needs a token; give --token-file or PELAB_TOKEN"};
    }
    const grpc::string_ref given = found->second;
    if (given.size() != expected_.size() ||
        CRYPTO_memcmp(given.data(), expected_.data(), expected_.size()) != 0) {
      return {grpc::StatusCode::UNAUTHENTICATED, "the token is not this coordinator's"};
    }
    consumed->emplace("authorization", std::string(given.data(), given.size()));
    return grpc::Status::OK;
  }

 private:
  const std::string expected_;
};

absl::StatusOr<std::string> CheckToken(std::string token, absl::string_view source) {
  const bool printable = std::all_of(token.begin(), token.end(), [](char c) {
    return absl::ascii_isgraph(static_cast<unsigned char>(c));
  });
  if (!printable || token.size() < kMinTokenBytes || token.size() > kMaxTokenBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "invalid token in ", source, " (", token.size(), " characters); allowed: ", kMinTokenBytes,
        " to ", kMaxTokenBytes, " printable characters without spaces, on one line"));
  }
  return token;
}

// The client's token: from its file, otherwise from the environment; "" if there is none.
absl::StatusOr<std::string> ClientToken(const ClientSecurity& security) {
  if (!security.token_file.empty()) return ReadTokenFile(security.token_file);
  const char* token = std::getenv(kTokenVariable);
  if (token == nullptr || *token == '\0') return std::string();
  return CheckToken(token, kTokenVariable);
}

}  // namespace

absl::StatusOr<std::string> ReadTokenFile(const std::string& path) {
  PELAB_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxTokenBytes + 2));
  return CheckToken(std::string(absl::StripTrailingAsciiWhitespace(text)), path);
}

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeServerCredentials(
    const ServerSecurity& security, const Address& address) {
  const bool tls = !security.tls_cert_file.empty() || !security.tls_key_file.empty();
  if (tls && (security.tls_cert_file.empty() || security.tls_key_file.empty())) {
    return absl::InvalidArgumentError("--tls-cert and --tls-key are only allowed together");
  }
  if (tls && security.insecure)
    return absl::InvalidArgumentError("--insecure and --tls-cert contradict each other");
  if (!tls && !security.token_file.empty()) {
    return absl::InvalidArgumentError(
        "--token-file needs --tls-cert and --tls-key: over a plain connection anybody could read "
        "the token");
  }
  if (!tls) {
    if (address.IsLocal() || security.insecure) return grpc::InsecureServerCredentials();
    return absl::InvalidArgumentError(absl::StrCat(
        address.ToString(),
        " can be reached from other machines; allowed: --tls-cert, --tls-key and --token-file, or "
        "--insecure to accept anybody"));
  }
  if (security.token_file.empty() && !address.IsLocal()) {
    return absl::InvalidArgumentError(absl::StrCat(
        address.ToString(), " can be reached from other machines and needs --token-file"));
  }
  grpc::SslServerCredentialsOptions options;
  PELAB_ASSIGN_OR_RETURN(std::string key, ReadFile(security.tls_key_file, kMaxPemBytes));
  PELAB_ASSIGN_OR_RETURN(std::string certificate, ReadFile(security.tls_cert_file, kMaxPemBytes));
  options.pem_key_cert_pairs.push_back({std::move(key), std::move(certificate)});
  auto credentials = grpc::SslServerCredentials(options);
  if (!security.token_file.empty()) {
    PELAB_ASSIGN_OR_RETURN(const std::string token, ReadTokenFile(security.token_file));
    credentials->SetAuthMetadataProcessor(std::make_shared<TokenProcessor>(token));
  }
  return credentials;
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> MakeChannelCredentials(
    const ClientSecurity& security, const Address& address) {
  const bool asked = security.tls || !security.tls_ca_file.empty();
  if (asked && security.insecure)
    return absl::InvalidArgumentError("--insecure and --tls contradict each other");
  const bool tls = asked || (!address.IsLocal() && !security.insecure);
  if (!tls) {
    if (!security.token_file.empty()) {
      return absl::InvalidArgumentError(
          "--token-file needs --tls: over a plain connection anybody could read the token");
    }
    return grpc::InsecureChannelCredentials();
  }
  grpc::SslCredentialsOptions options;
  if (!security.tls_ca_file.empty()) {
    PELAB_ASSIGN_OR_RETURN(options.pem_root_certs, ReadFile(security.tls_ca_file, kMaxPemBytes));
  }
  auto credentials = grpc::SslCredentials(options);
  PELAB_ASSIGN_OR_RETURN(const std::string token, ClientToken(security));
  if (token.empty()) return credentials;
  return grpc::CompositeChannelCredentials(credentials, grpc::AccessTokenCredentials(token));
}

void ConfigureServer(grpc::ServerBuilder& builder) {
  builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
  builder.SetMaxSendMessageSize(kMaxMessageBytes);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveTimeMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             kKeepaliveTimeMs / 2);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // Two coordinators on one port would share its workers at random.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
}

}  // namespace pelab::rpc
