#include "core/rpc/credentials.h"

#include <grpcpp/grpcpp.h>
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

absl::Status CheckPair(const std::string& certificate, const std::string& key) {
  if (certificate.empty() == key.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError("--tls-cert and --tls-key are only allowed together");
}

absl::Status CheckAuthorities(const char* flag, const std::string& file) {
  PELAB_ASSIGN_OR_RETURN(const std::string text, ReadFile(file, kMaxPemBytes));
  const Certificate certificate(
      PEM_read_bio_X509(ReadableText(text).get(), nullptr, nullptr, nullptr));
  if (certificate) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(flag, " ", file, " has no certificate in PEM form"));
}

// The client's token: from its file, otherwise from the environment; null if there is none.
absl::StatusOr<std::shared_ptr<TokenFile>> ClientToken(const ClientSecurity& security) {
  if (!security.token_file.empty()) return TokenFile::Open(security.token_file);
  const char* token = std::getenv(kTokenVariable);
  if (token == nullptr || *token == '\0') return nullptr;
  PELAB_ASSIGN_OR_RETURN(std::string checked, CheckToken(token, kTokenVariable));
  return TokenFile::Fixed(std::move(checked));
}

bool UsesTls(const ServerSecurity& security) { return !security.tls_cert_file.empty(); }

std::shared_ptr<grpc::ServerCredentials> TlsCredentials(const ServerSecurity& security) {
  using grpc::experimental::FileWatcherCertificateProvider;
  const std::string& authorities = security.tls_client_ca_file;
  const auto provider =
      authorities.empty()
          ? std::make_shared<FileWatcherCertificateProvider>(
                security.tls_key_file, security.tls_cert_file, kLookForCertificateSeconds)
          : std::make_shared<FileWatcherCertificateProvider>(security.tls_key_file,
                                                             security.tls_cert_file, authorities,
                                                             kLookForCertificateSeconds);
  grpc::experimental::TlsServerCredentialsOptions options(provider);
  options.watch_identity_key_cert_pairs();
  if (authorities.empty()) {
    options.set_cert_request_type(GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
  } else {
    options.watch_root_certs();
    // Requested, not required: a client may have a token instead.
    options.set_cert_request_type(GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY);
  }
  return grpc::experimental::TlsServerCredentials(options);
}

}  // namespace

absl::Status CheckServerSecurity(const ServerSecurity& security, const Address& address) {
  PELAB_RETURN_IF_ERROR(CheckPair(security.tls_cert_file, security.tls_key_file));
  const bool tls = UsesTls(security);
  if (tls && security.insecure)
    return absl::InvalidArgumentError("--insecure and --tls-cert contradict each other");
  if (!tls && !security.tls_client_ca_file.empty()) {
    return absl::InvalidArgumentError("--tls-client-ca needs --tls-cert and --tls-key");
  }
  if (!tls && !security.token_file.empty() && !CanIdentify(security, address)) {
    return absl::InvalidArgumentError(
        "--token-file needs --tls-cert and --tls-key: over a plain connection anybody could read "
        "the token");
  }
  if (!tls) {
    if (address.IsLocal() || security.insecure) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        address.ToString(),
        " can be reached from other machines; allowed: --tls-cert and --tls-key, or --insecure to "
        "accept anybody"));
  }
  if (!security.tls_client_ca_file.empty()) {
    PELAB_RETURN_IF_ERROR(CheckAuthorities("--tls-client-ca", security.tls_client_ca_file));
  }
  return CheckCertificate(security);
}

// gRPC's check of local peers knows these addresses of the loopback alone.
bool CanIdentify(const ServerSecurity& security, const Address& address) {
  return UsesTls(security) || address.is_unix || address.host == "localhost" ||
         address.host == "127.0.0.1" || address.host == "::1";
}

std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(
    const ServerSecurity& security, const Address& address,
    const std::shared_ptr<grpc::AuthMetadataProcessor>& processor) {
  if (!CanIdentify(security, address)) return grpc::InsecureServerCredentials();
  auto credentials =
      UsesTls(security)
          ? TlsCredentials(security)
          : grpc::experimental::LocalServerCredentials(address.is_unix ? UDS : LOCAL_TCP);
  if (processor) credentials->SetAuthMetadataProcessor(processor);
  return credentials;
}

absl::StatusOr<ChannelSecurity> MakeChannelSecurity(const ClientSecurity& security,
                                                    const Address& address) {
  PELAB_RETURN_IF_ERROR(CheckPair(security.tls_cert_file, security.tls_key_file));
  const bool asked =
      security.tls || !security.tls_ca_file.empty() || !security.tls_cert_file.empty();
  if (asked && security.insecure)
    return absl::InvalidArgumentError("--insecure and --tls contradict each other");
  const bool tls = asked || (!address.IsLocal() && !security.insecure);
  if (!tls && !address.IsLocal()) {
    if (!security.token_file.empty()) {
      return absl::InvalidArgumentError(
          "--token-file needs --tls: over a plain connection anybody could read the token");
    }
    return ChannelSecurity{grpc::InsecureChannelCredentials(), nullptr};
  }
  PELAB_ASSIGN_OR_RETURN(std::shared_ptr<TokenFile> token, ClientToken(security));
  if (!tls) return ChannelSecurity{grpc::InsecureChannelCredentials(), std::move(token)};
  grpc::SslCredentialsOptions options;
  if (!security.tls_ca_file.empty()) {
    PELAB_ASSIGN_OR_RETURN(options.pem_root_certs, ReadFile(security.tls_ca_file, kMaxPemBytes));
  }
  if (!security.tls_cert_file.empty()) {
    PELAB_ASSIGN_OR_RETURN(options.pem_cert_chain, ReadFile(security.tls_cert_file, kMaxPemBytes));
    PELAB_ASSIGN_OR_RETURN(options.pem_private_key, ReadFile(security.tls_key_file, kMaxPemBytes));
  }
  return ChannelSecurity{grpc::SslCredentials(options), std::move(token)};
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
