// Channels and credentials against a real server: plain, TLS, and TLS with a token.
#include "core/rpc/channel.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/security/auth_metadata_processor.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/file.h"
#include "core/base/process.h"
#include "core/rpc/credentials.h"
#include "core/rpc/secrets.h"
#include "core/rpc/status.h"
#include "pelab/v1/results.grpc.pb.h"
#include "tests/support/logged.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace pelab::rpc {
namespace {

using pelab::testing_support::Logged;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kToken[] = "0123456789abcdef-token";

class EchoResults final : public v1::Results::Service {
  grpc::Status ListWorkers(grpc::ServerContext*, const v1::ListWorkersRequest*,
                           v1::ListWorkersResponse*) override {
    return grpc::Status::OK;
  }
};

// Admits calls with the token of a file.
class OneToken final : public grpc::AuthMetadataProcessor {
 public:
  explicit OneToken(const std::string& file) : token_(*TokenFile::Open(file)) {}
  bool IsBlocking() const override { return false; }
  grpc::Status Process(const InputMetadata& metadata, grpc::AuthContext*, OutputMetadata*,
                       OutputMetadata*) override {
    const auto given = metadata.find("authorization");
    if (given == metadata.end()) return {grpc::StatusCode::UNAUTHENTICATED, "needs a token"};
    const std::string text(given->second.data(), given->second.size());
    constexpr std::size_t kBearer = 7;  // the length of "Bearer "
    if (token_->Is(text.substr(kBearer))) return grpc::Status::OK;
    return {grpc::StatusCode::UNAUTHENTICATED, "another token"};
  }

 private:
  const std::shared_ptr<TokenFile> token_;
};

class ChannelTest : public testing::Test {
 protected:
  void SetUp() override {
    unsetenv("PELAB_TOKEN");
    ASSERT_THAT(WriteFileAtomically(dir_ / "token", absl::StrCat(kToken, "\n")), IsOk());
    ASSERT_THAT(WriteFileAtomically(dir_ / "other", "another-token-of-length"), IsOk());
  }

  // Makes a certificate for localhost with the openssl program.
  void MakeCertificate(const std::string& certificate = "cert.pem",
                       const std::string& key = "key.pem") {
    SpawnOptions options;
    options.argv = {"/usr/bin/openssl",
                    "req",
                    "-x509",
                    "-newkey",
                    "ec",
                    "-pkeyopt",
                    "ec_paramgen_curve:prime256v1",
                    "-nodes",
                    "-days",
                    "2",
                    "-subj",
                    "/CN=localhost",
                    "-addext",
                    "subjectAltName=DNS:localhost",
                    "-keyout",
                    dir_ / key,
                    "-out",
                    dir_ / certificate};
    const auto process = Process::Spawn(options);
    if (!process.ok()) GTEST_SKIP() << "needs the openssl program";
    ASSERT_TRUE(const_cast<Process&>(*process).Wait().ok());
  }
  // Listens on a free port of localhost and returns its address.
  Address Serve(const ServerSecurity& security) {
    const Address listen = *ParseAddress("localhost:0", PortZero::kAllowed);
    EXPECT_THAT(CheckServerSecurity(security, listen), IsOk());
    std::shared_ptr<grpc::AuthMetadataProcessor> processor;
    if (!security.token_file.empty()) processor = std::make_shared<OneToken>(security.token_file);
    grpc::ServerBuilder builder;
    ConfigureServer(builder);
    int port = 0;
    builder.AddListeningPort(listen.ToString(), MakeServerCredentials(security, listen, processor),
                             &port);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    return Address{.host = "localhost", .port = port};
  }
  static absl::Status Call(const Address& address, const ClientSecurity& security) {
    const auto channel = Connect(address, security, absl::Seconds(10));
    if (!channel.ok()) return channel.status();
    grpc::ClientContext context;
    v1::ListWorkersResponse response;
    return FromGrpc(v1::Results::NewStub(*channel)->ListWorkers(&context, {}, &response));
  }

  TempDir dir_;
  EchoResults service_;
  std::unique_ptr<grpc::Server> server_;
};

TEST_F(ChannelTest, PlainOnLoopback) {
  const Address address = Serve({});
  EXPECT_THAT(Call(address, {}), IsOk());
  setenv("PELAB_TOKEN", kToken, 1);  // that nobody asks for is not an error
  EXPECT_THAT(Call(address, {}), IsOk());
}

// What only this machine can reach is plain, and a token is sent all the same.
TEST_F(ChannelTest, ATokenIsSentOnThisMachine) {
  ASSERT_THAT(WriteFileAtomically(dir_ / "token", kToken), IsOk());
  ServerSecurity security;
  security.token_file = dir_ / "token";
  const Address address = Serve(security);
  EXPECT_THAT(Call(address, {}), StatusIs(absl::StatusCode::kUnauthenticated, testing::_));
  ClientSecurity client;
  client.token_file = dir_ / "token";
  EXPECT_THAT(Call(address, client), IsOk());
  setenv("PELAB_TOKEN", kToken, 1);
  EXPECT_THAT(Call(address, {}), IsOk());
}

TEST_F(ChannelTest, NobodyThere) {
  const absl::Time begin = absl::Now();
  const Address address = *ParseAddress("unix:" + (dir_ / "none"));
  EXPECT_THAT(Connect(address, {}, absl::Seconds(30)),
              StatusIs(absl::StatusCode::kUnavailable, "no coordinator at " + address.ToString()));
  EXPECT_LT(absl::Now() - begin, absl::Seconds(10));
  EXPECT_THAT(Connect(address, {}, absl::Milliseconds(300), OnRefusal::kWait),
              StatusIs(absl::StatusCode::kUnavailable, testing::_));
}

TEST_F(ChannelTest, WaitsForOneThatIsBeingStarted) {
  const Address address = *ParseAddress("unix:" + (dir_ / "s"));
  const auto channel = CreateChannel(address, {});
  ASSERT_THAT(channel, IsOk());
  (*channel)->GetState(true);
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address.ToString(), grpc::InsecureServerCredentials());
  builder.RegisterService(&service_);
  server_ = builder.BuildAndStart();
  EXPECT_THAT(Connect(address, {}, absl::Seconds(20), OnRefusal::kWait), IsOk());
}

TEST_F(ChannelTest, TlsChecksTheCertificateAndTheToken) {
  MakeCertificate();
  const Address address = Serve({dir_ / "cert.pem", dir_ / "key.pem", dir_ / "token"});
  ClientSecurity security;
  security.tls_ca_file = dir_ / "cert.pem";
  security.token_file = dir_ / "token";
  EXPECT_THAT(Call(address, security), IsOk());

  security.token_file = "";
  EXPECT_THAT(Call(address, security),
              StatusIs(absl::StatusCode::kUnauthenticated, HasSubstr("needs a token")));
  security.token_file = dir_ / "other";
  EXPECT_THAT(Call(address, security),
              StatusIs(absl::StatusCode::kUnauthenticated, HasSubstr("another token")));
  security.token_file = "";
  setenv("PELAB_TOKEN", kToken, 1);
  EXPECT_THAT(Call(address, security), IsOk());

  // Without TLS.
  EXPECT_THAT(Call(address, {}),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr(address.ToString())));
  ClientSecurity distrusting;
  distrusting.tls = true;  // the system's authorities do not know this certificate
  EXPECT_THAT(Call(address, distrusting), StatusIs(absl::StatusCode::kUnavailable, testing::_));
}

// Calls until the answer has the code, because the server looks at its files once a second.
absl::Status CallUntil(absl::StatusCode code, const std::function<absl::Status()>& call) {
  const absl::Time deadline = absl::Now() + absl::Seconds(60);
  absl::Status status = call();
  while (status.code() != code && absl::Now() < deadline) {
    absl::SleepFor(absl::Milliseconds(50));
    status = call();
  }
  return status;
}

TEST_F(ChannelTest, ANewTokenAndANewCertificateNeedNoRestart) {
  MakeCertificate();
  const Address address = Serve({dir_ / "cert.pem", dir_ / "key.pem", dir_ / "token"});
  ClientSecurity old;
  old.tls_ca_file = dir_ / "old.pem";
  std::filesystem::copy(dir_ / "cert.pem", dir_ / "old.pem");
  setenv("PELAB_TOKEN", kToken, 1);
  ASSERT_THAT(Call(address, old), IsOk());

  ASSERT_THAT(WriteFileAtomically(dir_ / "token", "another-token-of-length"), IsOk());
  EXPECT_THAT(CallUntil(absl::StatusCode::kUnauthenticated, [&] { return Call(address, old); }),
              StatusIs(absl::StatusCode::kUnauthenticated, HasSubstr("another token")));
  setenv("PELAB_TOKEN", "another-token-of-length", 1);
  EXPECT_THAT(Call(address, old), IsOk());
  // What is no token changes nothing.
  ASSERT_THAT(WriteFileAtomically(dir_ / "token", "short"), IsOk());
  absl::SleepFor(absl::Milliseconds(1100));
  EXPECT_THAT(Call(address, old), IsOk());

  MakeCertificate("new.pem", "new-key.pem");
  std::filesystem::rename(dir_ / "new-key.pem", dir_ / "key.pem");
  std::filesystem::rename(dir_ / "new.pem", dir_ / "cert.pem");
  ClientSecurity renewed;
  renewed.tls_ca_file = dir_ / "cert.pem";
  EXPECT_THAT(CallUntil(absl::StatusCode::kOk, [&] { return Call(address, renewed); }), IsOk());
  EXPECT_THAT(Call(address, old), StatusIs(absl::StatusCode::kUnavailable, testing::_));
}

TEST_F(ChannelTest, ACertificateThatCannotBeUsedIsRefusedAtTheStart) {
  MakeCertificate();
  MakeCertificate("other.pem", "other-key.pem");
  const Address address = *ParseAddress("localhost:0", PortZero::kAllowed);
  EXPECT_THAT(CheckServerSecurity({dir_ / "token", dir_ / "key.pem"}, address),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("token has no certificate in PEM form")));
  EXPECT_THAT(CheckServerSecurity({dir_ / "cert.pem", dir_ / "cert.pem"}, address),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no private key")));
  EXPECT_THAT(CheckServerSecurity({dir_ / "cert.pem", dir_ / "other-key.pem"}, address),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is not the key of")));
}

class SecretsTest : public testing::Test {
 protected:
  TempDir dir_;
};

TEST_F(SecretsTest, WrongTokensAreToldOfOnceInAWhile) {
  const std::string log = Logged([] {
    WrongTokens wrong("calls");
    for (int i = 0; i < 1000; ++i) wrong.Add();
  });
  EXPECT_THAT(log, HasSubstr("calls: 1 wrong tokens so far"));
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1);
}

TEST_F(SecretsTest, AFileThatEverybodyCanReadIsToldOf) {
  const auto open = [&] { EXPECT_THAT(TokenFile::Open(dir_ / "token"), IsOk()); };
  ASSERT_THAT(WriteFileAtomically(dir_ / "token", kToken, 0600), IsOk());
  EXPECT_EQ(Logged(open), "");
  ASSERT_THAT(WriteFileAtomically(dir_ / "token", kToken, 0644), IsOk());
  EXPECT_THAT(Logged(open), HasSubstr("every user of this host can read"));
}

TEST_F(ChannelTest, AKeyThatEverybodyCanReadIsToldOf) {
  MakeCertificate();
  const auto check = [&] {
    EXPECT_THAT(CheckServerSecurity({dir_ / "cert.pem", dir_ / "key.pem"},
                                    *ParseAddress("localhost:0", PortZero::kAllowed)),
                IsOk());
  };
  std::filesystem::permissions(dir_ / "key.pem", std::filesystem::perms(0600));
  EXPECT_EQ(Logged(check), "");
  std::filesystem::permissions(dir_ / "key.pem", std::filesystem::perms(0644));
  EXPECT_THAT(Logged(check),
              AllOf(HasSubstr("every user of this host can read"), HasSubstr("key.pem")));
}

TEST_F(ChannelTest, OtherAddressesNeedTlsOrAnExplicitWord) {
  const Address open = *ParseAddress("0.0.0.0:7077");
  EXPECT_THAT(CheckServerSecurity({}, open),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("0.0.0.0:7077 can be reached from other machines"),
                             HasSubstr("--insecure"))));
  ServerSecurity security;
  security.insecure = true;
  EXPECT_THAT(CheckServerSecurity(security, open), IsOk());
  security.tls_cert_file = "cert.pem";
  EXPECT_THAT(CheckServerSecurity(security, open),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("only allowed together")));
  security.tls_key_file = "key.pem";
  EXPECT_THAT(CheckServerSecurity(security, open),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("contradict")));
  ServerSecurity only_token;
  only_token.token_file = "token";
  only_token.insecure = true;
  EXPECT_THAT(
      CheckServerSecurity(only_token, open),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--token-file needs --tls-cert")));
  ServerSecurity only_authorities;
  only_authorities.tls_client_ca_file = "ca.pem";
  EXPECT_THAT(CheckServerSecurity(only_authorities, *ParseAddress("localhost:1")),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("needs --tls-cert")));
}

TEST_F(ChannelTest, ClientsRefuseToTellATokenInPlain) {
  const Address remote = *ParseAddress("example.org:7077");
  ClientSecurity security;
  security.insecure = true;
  EXPECT_THAT(MakeChannelSecurity(security, remote), IsOk());
  security.token_file = dir_ / "mine";
  EXPECT_THAT(MakeChannelSecurity(security, remote),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("needs --tls")));
  security.tls = true;
  EXPECT_THAT(MakeChannelSecurity(security, remote),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("contradict")));
  security.insecure = false;
  EXPECT_THAT(MakeChannelSecurity(security, remote),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(dir_ / "mine")));
  ASSERT_THAT(WriteFileAtomically(dir_ / "mine", "short"), IsOk());
  EXPECT_THAT(MakeChannelSecurity(security, remote),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("invalid token"), HasSubstr("allowed: 16 to"))));
}

}  // namespace
}  // namespace pelab::rpc
