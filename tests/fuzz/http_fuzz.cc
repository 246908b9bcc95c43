// Any bytes on a connection to the coordinator's pages: each answer is HTTP with a status below
// 500, and the server goes on.
//
// The server is the real one, on a free port of loopback. Calls that change sweeps end at a service
// that says yes to everything; request_fuzz is about the real one.
#include <arpa/inet.h>
#include <grpcpp/grpcpp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "core/base/file.h"
#include "core/base/json_text.h"
#include "core/base/unique_fd.h"
#include "server/http/http_server.h"
#include "tests/fuzz/quiet.h"
#include "tests/fuzz/small_database.h"

namespace pelab::http_fuzz {
namespace {

using fuzz::Require;

constexpr char kToken[] = "0123456789abcdef0123456789abcdef";
constexpr int kPatienceMs = 10'000;  // of the target: a server that takes longer hangs

// Calls that no handler answers would be UNIMPLEMENTED.
class Yes final : public v1::Sweeps::Service {
  grpc::Status Cancel(grpc::ServerContext*, const v1::CancelRequest*,
                      v1::CancelResponse*) override {
    return grpc::Status::OK;
  }
  grpc::Status Pause(grpc::ServerContext*, const v1::PauseRequest*, v1::SweepControl*) override {
    return grpc::Status::OK;
  }
  grpc::Status Resume(grpc::ServerContext*, const v1::ResumeRequest*, v1::SweepControl*) override {
    return grpc::Status::OK;
  }
  grpc::Status SetPriority(grpc::ServerContext*, const v1::SetPriorityRequest* request,
                           v1::SweepControl* response) override {
    response->set_priority(request->priority());
    return grpc::Status::OK;
  }
  grpc::Status SetNote(grpc::ServerContext*, const v1::SetNoteRequest*,
                       v1::SweepControl*) override {
    return grpc::Status::OK;
  }
  grpc::Status Retry(grpc::ServerContext*, const v1::RetryRequest*, v1::RetryResponse*) override {
    return grpc::Status::OK;
  }
  grpc::Status Extend(grpc::ServerContext*, const v1::ExtendRequest* request,
                      v1::ExtendResponse* response) override {
    response->set_new_seeds(request->seeds());
    return grpc::Status::OK;
  }
};

class Pages {
 public:
  Pages() {
    grpc::ServerBuilder builder;
    builder.RegisterService(&yes_);
    rpc_ = builder.BuildAndStart();
    stub_ = v1::Sweeps::NewStub(rpc_->InProcessChannel({}));
    const std::string token_file = database_.directory() + "/token";
    Require(WriteFileAtomically(token_file, kToken, 0600).ok(), "the token can be written");
    http::HttpOptions options{.listen = *rpc::ParseAddress("127.0.0.1:0", rpc::PortZero::kAllowed),
                              .database = database_.path(),
                              .write_token = *rpc::TokenFile::Open(token_file),
                              .sweeps = stub_.get()};
    auto server = http::HttpServer::Start(options, sources_);
    Require(server.ok(), "the server starts", server.status().ToString());
    server_ = *std::move(server);
    const std::string& address = server_->address();
    port_ = static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
  }
  std::uint16_t port() const { return port_; }

 private:
  fuzz::SmallDatabase database_;
  Yes yes_;
  std::unique_ptr<grpc::Server> rpc_;
  std::unique_ptr<v1::Sweeps::Stub> stub_;
  const http::Sources sources_{.clock = SystemClock::Instance(),
                               .version = [] { return std::uint64_t{1}; },
                               .waiting_reason = [](std::int64_t) { return std::string(); },
                               .workers = [] { return std::vector<sched::WorkerStatus>(); },
                               .demand =
                                   [](const sched::Slot&) {
                                     return sched::Scheduler::Demand{.waiting_jobs = 7,
                                                                     .free_slots = 2};
                                   }};
  std::unique_ptr<http::HttpServer> server_;
  std::uint16_t port_ = 0;
};

// Everything that the server answers until it closes the connection.
std::string Exchange(std::uint16_t port, std::string_view request) {
  const UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  Require(connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0,
          "the server listens");
  while (!request.empty()) {
    const ssize_t sent = send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL);
    if (sent <= 0) break;  // it has refused already
    request.remove_prefix(static_cast<std::size_t>(sent));
  }
  shutdown(fd.get(), SHUT_WR);
  std::string answer;
  char buffer[16 << 10];
  while (true) {
    pollfd readable{.fd = fd.get(), .events = POLLIN, .revents = 0};
    const int ready = poll(&readable, 1, kPatienceMs);
    if (ready < 0 && errno == EINTR) continue;  // libFuzzer's alarm
    Require(ready == 1, "the server answers or closes the connection");
    const ssize_t got = recv(fd.get(), buffer, sizeof(buffer), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return answer;
    answer.append(buffer, static_cast<std::size_t>(got));
  }
}

// The first answer. A connection may be closed without one.
void CheckAnswer(std::string_view answer) {
  if (answer.empty()) return;
  Require(absl::StartsWith({answer.data(), answer.size()}, "HTTP/1.1 ") && answer.size() > 12,
          "an answer is HTTP", answer);
  const std::string_view status = answer.substr(9, 3);
  Require(status[0] >= '2' && status[0] <= '4', "no request is an error of the server", answer);
}

// A stream of events does not end.
bool AsksForEvents(std::string_view request) {
  std::string plain;
  for (std::size_t i = 0; i < request.size(); ++i) {
    unsigned code = 0;
    const bool escaped =
        request[i] == '%' && i + 2 < request.size() &&
        std::from_chars(&request[i + 1], &request[i + 3], code, 16).ptr == &request[i + 3];
    plain += escaped ? static_cast<char>(code) : request[i];
    if (escaped) i += 2;
  }
  return plain.find("events") != std::string::npos;
}

}  // namespace

PELAB_FUZZ_TARGET(http) {
  static const Pages pages;
  const std::string_view request(reinterpret_cast<const char*>(data), size);
  if (AsksForEvents(request)) return 0;
  CheckAnswer(Exchange(pages.port(), request));
  return 0;
}

}  // namespace pelab::http_fuzz
