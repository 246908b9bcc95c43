#include "core/rpc/credentials.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/security/auth_metadata_processor.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <cstdlib>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/status.h"
#include "core/rpc/channel.h"
#include "core/rpc/secrets.h"
#include "core/rpc/token_variable.h"

namespace pelab::rpc {
namespace {

constexpr std::size_t kMaxPemBytes = 1 << 20;

constexpr unsigned kLookForCertificateSeconds = 1;
constexpr absl::string_view kBearer = "Bearer ";

// The only place that checks a call's token.
class TokenProcessor final : public grpc::AuthMetadataProcessor {
 public:
  explicit TokenProcessor(std::shared_ptr<TokenFile> token) : token_(std::move(token)) {}

  bool IsBlocking() const override { return false; }

  grpc::Status Process(const InputMetadata& metadata, grpc::AuthContext*, OutputMetadata* consumed,
                       OutputMetadata*) override {
    const auto found = metadata.find("authorization");
    if (found == metadata.end()) {
      return {grpc::StatusCode::UNAUTHENTICATED,
              "this coordinator needs a token; give --token-file or PELAB_TOKEN"};
    }
    const absl::string_view given(found->second.data(), found->second.size());
    if (!absl::StartsWith(given, kBearer) ||
        !token_->Is({given.data() + kBearer.size(), given.size() - kBearer.size()})) {
      wrong_.Add();
      return {grpc::StatusCode::UNAUTHENTICATED, "the token is not this coordinator's"};
    }
    consumed->emplace("authorization", std::string(given.data(), given.size()));
    return grpc::Status::OK;
  }

 private:
  const std::shared_ptr<TokenFile> token_;
  WrongTokens wrong_{"calls"};
};

template <typename T, void (*Free)(T*)>
struct Freed {
  void operator()(T* object) const { Free(object); }
};
using Bio = std::unique_ptr<BIO, Freed<BIO, BIO_free_all>>;
using Certificate = std::unique_ptr<X509, Freed<X509, X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY, EVP_PKEY_free>>;

Bio ReadableText(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// gRPC would start with files that it cannot use, and refuse every connection.
absl::Status CheckCertificate(const ServerSecurity& security) {
  PELAB_ASSIGN_OR_RETURN(const std::string key_text, ReadFile(security.tls_key_file, kMaxPemBytes));
  PELAB_ASSIGN_OR_RETURN(const std::string text, ReadFile(security.tls_cert_file, kMaxPemBytes));
  const Certificate certificate(
      PEM_read_bio_X509(ReadableText(text).get(), nullptr, nullptr, nullptr));
  if (!certificate) {
    return absl::InvalidArgumentError(
        absl::StrCat("--tls-cert ", security.tls_cert_file, " has no certificate in PEM form"));
  }
  // An encrypted key would ask for its password on the terminal.
  const auto no_password = [](char*, int, int, void*) { return -1; };
  const Key key(
      PEM_read_bio_PrivateKey(ReadableText(key_text).get(), nullptr, no_password, nullptr));
  if (!key) {
    return absl::InvalidArgumentError(
        absl::StrCat("--tls-key ", security.tls_key_file,
                     " has no private key in PEM form, or one that is encrypted"));
  }
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    return absl::InvalidArgumentError(absl::StrCat("--tls-key ", security.tls_key_file,
                                                   " is not the key of the certificate ",
                                                   security.tls_cert_file));
  }
  WarnIfOthersCanRead(security.tls_key_file);
  return absl::OkStatus();
}

// The client's token: from its file, otherwise from the environment; "" if there is none.
absl::StatusOr<std::string> ClientToken(const ClientSecurity& security) {
  if (!security.token_file.empty()) return ReadTokenFile(security.token_file);
  const char* token = std::getenv(kTokenVariable);
  if (token == nullptr || *token == '\0') return std::string();
  return CheckToken(token, kTokenVariable);
}

}  // namespace

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
  PELAB_RETURN_IF_ERROR(CheckCertificate(security));
  grpc::experimental::TlsServerCredentialsOptions options(
      std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
          security.tls_key_file, security.tls_cert_file, kLookForCertificateSeconds));
  options.watch_identity_key_cert_pairs();
  options.set_cert_request_type(GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
  auto credentials = grpc::experimental::TlsServerCredentials(options);
  if (!security.token_file.empty()) {
    PELAB_ASSIGN_OR_RETURN(auto token, TokenFile::Open(security.token_file));
    credentials->SetAuthMetadataProcessor(std::make_shared<TokenProcessor>(std::move(token)));
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
  // A peer that connects and says nothing, and a client that does nothing for long, hold a
  // descriptor.
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeTimeoutMs);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kIdleConnectionMs);
}

}  // namespace pelab::rpc
