// A coordinator with principals, and calls in the name of each.
#pragma once

#include <grpcpp/generic/generic_stub.h>

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "core/base/file.h"
#include "core/rpc/channel.h"
#include "core/rpc/status.h"
#include "pelab/v1/admin.grpc.pb.h"
#include "tests/contract/rpc/coordinator_fixture.h"
#include "tests/support/status_matchers.h"

namespace pelab {

class IdentityTest : public CoordinatorTest {
 protected:
  using Channel = std::shared_ptr<grpc::Channel>;

  // A channel whose calls carry the token; empty: none.
  Channel With(const std::string& token) {
    rpc::ClientSecurity security;
    if (!token.empty()) {
      security.token_file = absl::StrCat(directory_, "/token", ++files_);
      EXPECT_TRUE(WriteFileAtomically(security.token_file, token, 0600).ok());
    }
    auto channel =
        rpc::CreateChannel(*rpc::ParseAddress(coordinator_->addresses().front()), security);
    EXPECT_TRUE(channel.ok()) << channel.status();
    return *channel;
  }

  template <typename Service, typename Method, typename Request, typename Response>
  static absl::Status Call(const Channel& channel, Method method, const Request& request,
                           Response& response) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + kPatience));
    const auto stub = Service::NewStub(channel);
    return rpc::FromGrpc((stub.get()->*method)(&context, request, &response));
  }
  // Adds a principal by a call over `channel` and returns its token.
  absl::StatusOr<std::string> Add(const Channel& channel, const v1::AddPrincipalRequest& request) {
    v1::PrincipalToken answer;
    const absl::Status status =
        Call<v1::Admin>(channel, &v1::Admin::Stub::AddPrincipal, request, answer);
    if (!status.ok()) return status;
    return answer.token();
  }
  static v1::AddPrincipalRequest Request(const std::string& name, v1::Role role) {
    v1::AddPrincipalRequest request;
    request.set_name(name);
    request.set_role(role);
    return request;
  }
  // Adds the operator "root", which switches identity on, and connects as it.
  void BeginIdentity() {
    const auto token = Add(With(""), Request("root", v1::ROLE_OPERATOR));
    ASSERT_TRUE(token.ok()) << token.status();
    root_token_ = *token;
    root_ = With(*token);
  }
  // Adds a principal as root and connects as it.
  Channel Join(const v1::AddPrincipalRequest& request) {
    const auto token = Add(root_, request);
    EXPECT_TRUE(token.ok()) << token.status();
    tokens_[request.name()] = token.value_or("");
    return With(token.value_or("no-such-token-at-all"));
  }
  Channel Join(const std::string& name, v1::Role role) { return Join(Request(name, role)); }

  absl::Status Change(const v1::ChangePrincipalRequest& request) {
    v1::Principal answer;
    return Call<v1::Admin>(root_, &v1::Admin::Stub::ChangePrincipal, request, answer);
  }
  absl::Status SetDisabled(const std::string& name, bool disabled) {
    v1::ChangePrincipalRequest request;
    request.set_name(name);
    request.set_disabled(disabled);
    return Change(request);
  }
  static absl::Status List(const Channel& channel) {
    v1::ListSweepsResponse response;
    return Call<v1::Sweeps>(channel, &v1::Sweeps::Stub::ListSweeps, v1::ListSweepsRequest(),
                            response);
  }
  static absl::Status SubmitAs(const Channel& channel, const std::string& document,
                               v1::SubmitResponse* answer = nullptr, int priority = 0) {
    static int tokens = 0;
    v1::SubmitRequest request;
    request.set_document(document);
    request.set_client_token(absl::StrCat("t", ++tokens));
    request.set_priority(priority);
    v1::SubmitResponse response;
    const absl::Status status =
        Call<v1::Sweeps>(channel, &v1::Sweeps::Stub::Submit, request, response);
    if (answer != nullptr) *answer = response;
    return status;
  }
  // How any method answers a message of these bytes, with nothing after it.
  static absl::Status Raw(const Channel& channel, const std::string& path,
                          const std::string& bytes) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + kPatience));
    grpc::CompletionQueue queue;
    const auto next = [&queue] {
      void* tag = nullptr;
      bool ok = false;
      return queue.Next(&tag, &ok) && ok;
    };
    grpc::GenericStub stub(channel);
    const auto call = stub.PrepareCall(&context, path, &queue);
    call->StartCall(nullptr);
    next();
    const grpc::Slice slice(bytes);
    call->WriteLast(grpc::ByteBuffer(&slice, 1), grpc::WriteOptions(), nullptr);
    next();
    grpc::ByteBuffer answer;
    do {
      call->Read(&answer, nullptr);
    } while (next());
    grpc::Status status;
    call->Finish(&status, nullptr);
    next();
    return rpc::FromGrpc(status);
  }
  // Waits until the call is refused so, and returns whether it was.
  static bool AwaitRefusal(const std::function<absl::Status()>& call, absl::StatusCode code) {
    const absl::Time deadline = absl::Now() + kPatience;
    while (absl::Now() < deadline) {
      if (call().code() == code) return true;
      absl::SleepFor(absl::Milliseconds(20));
    }
    return false;
  }

  std::string root_token_;
  Channel root_;
  std::map<std::string, std::string> tokens_;
  int files_ = 0;
};

}  // namespace pelab
