#include "core/rpc/send_token.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace pelab::rpc {
namespace {

using grpc::experimental::ClientRpcInfo;
using grpc::experimental::InterceptionHookPoints;
using grpc::experimental::Interceptor;
using grpc::experimental::InterceptorBatchMethods;

class Sender final : public Interceptor {
 public:
  explicit Sender(std::shared_ptr<TokenFile> token) : token_(std::move(token)) {}

  void Intercept(InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_INITIAL_METADATA)) {
      methods->GetSendInitialMetadata()->emplace("authorization",
                                                 absl::StrCat("Bearer ", token_->Current()));
    }
    methods->Proceed();
  }

 private:
  const std::shared_ptr<TokenFile> token_;
};

class Maker final : public grpc::experimental::ClientInterceptorFactoryInterface {
 public:
  explicit Maker(std::shared_ptr<TokenFile> token) : token_(std::move(token)) {}
  Interceptor* CreateClientInterceptor(ClientRpcInfo*) override { return new Sender(token_); }

 private:
  const std::shared_ptr<TokenFile> token_;
};

}  // namespace

std::unique_ptr<grpc::experimental::ClientInterceptorFactoryInterface> SendToken(
    std::shared_ptr<TokenFile> token) {
  return std::make_unique<Maker>(std::move(token));
}

}  // namespace pelab::rpc
