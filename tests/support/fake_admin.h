// The service Admin of a coordinator, with principals in memory. Whoever calls is its first
// operator. A token tells what was asked for: "token-of-alice-2-revoked" is the second one, whose
// predecessor was revoked.
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/rpc/status.h"
#include "pelab/v1/admin.grpc.pb.h"

namespace pelab::client {

// Thread-safe.
class AdminForTest final : public v1::Admin::Service {
 public:
  using ListAuditFunction =
      std::function<absl::StatusOr<v1::ListAuditResponse>(const v1::ListAuditRequest&)>;
  explicit AdminForTest(ListAuditFunction list_audit) : list_audit_(std::move(list_audit)) {}

  grpc::Status WhoAmI(grpc::ServerContext*, const v1::WhoAmIRequest*,
                      v1::WhoAmIResponse* r) override {
    const std::lock_guard lock(mutex_);
    for (const auto& [name, principal] : principals_) {
      if (principal.role() != v1::ROLE_OPERATOR) continue;
      *r->mutable_principal() = principal;
      break;
    }
    return grpc::Status::OK;
  }
  grpc::Status AddPrincipal(grpc::ServerContext*, const v1::AddPrincipalRequest* q,
                            v1::PrincipalToken* r) override {
    const std::lock_guard lock(mutex_);
    if (principals_.contains(q->name())) {
      return rpc::ToGrpc(absl::AlreadyExistsError("there is a principal " + q->name()));
    }
    if (principals_.empty() && q->role() != v1::ROLE_OPERATOR) {
      return rpc::ToGrpc(absl::FailedPreconditionError("the first principal must be an operator"));
    }
    v1::Principal principal;
    principal.set_name(q->name());
    principal.set_role(q->role());
    principal.set_certificate_uri(q->certificate_uri());
    principal.set_created_at_ms(1'700'000'000'000);
    principal.set_expires_at_ms(q->expires_at_ms());
    *principal.mutable_limits() = q->limits();
    *r->mutable_principal() = principals_[q->name()] = principal;
    if (q->certificate_uri().empty()) r->set_token(TokenOf(q->name()));
    return grpc::Status::OK;
  }
  grpc::Status ListPrincipals(grpc::ServerContext*, const v1::ListPrincipalsRequest*,
                              v1::ListPrincipalsResponse* r) override {
    const std::lock_guard lock(mutex_);
    for (const auto& [name, principal] : principals_) *r->add_principals() = principal;
    return grpc::Status::OK;
  }
  grpc::Status ChangePrincipal(grpc::ServerContext*, const v1::ChangePrincipalRequest* q,
                               v1::Principal* r) override {
    const std::lock_guard lock(mutex_);
    const auto found = principals_.find(q->name());
    if (found == principals_.end()) {
      return rpc::ToGrpc(absl::NotFoundError("no principal " + q->name()));
    }
    v1::Principal& principal = found->second;
    v1::PrincipalLimits& limits = *principal.mutable_limits();
    if (q->has_disabled()) principal.set_disabled(q->disabled());
    if (q->has_role()) principal.set_role(q->role());
    if (q->has_expires_at_ms()) principal.set_expires_at_ms(q->expires_at_ms());
    if (q->has_share()) limits.set_share(q->share());
    if (q->has_max_slots()) limits.set_max_slots(q->max_slots());
    if (q->has_max_queued()) limits.set_max_queued(q->max_queued());
    if (q->has_gpu_seconds()) limits.set_gpu_seconds(q->gpu_seconds());
    if (q->has_max_priority()) limits.set_max_priority(q->max_priority());
    *r = principal;
    return grpc::Status::OK;
  }
  grpc::Status RotateToken(grpc::ServerContext*, const v1::RotateTokenRequest* q,
                           v1::PrincipalToken* r) override {
    const std::lock_guard lock(mutex_);
    const auto found = principals_.find(q->name());
    if (found == principals_.end()) {
      return rpc::ToGrpc(absl::NotFoundError("no principal " + q->name()));
    }
    found->second.set_expires_at_ms(q->expires_at_ms());
    *r->mutable_principal() = found->second;
    r->set_token(TokenOf(q->name()) + (q->revoke_previous() ? "-revoked" : ""));
    return grpc::Status::OK;
  }
  grpc::Status ListAudit(grpc::ServerContext*, const v1::ListAuditRequest* q,
                         v1::ListAuditResponse* r) override {
    const absl::StatusOr<v1::ListAuditResponse> answer = list_audit_(*q);
    if (!answer.ok()) return rpc::ToGrpc(answer.status());
    *r = *answer;
    return grpc::Status::OK;
  }

  // Adds or replaces a principal, whatever it is.
  void Put(const v1::Principal& principal) {
    const std::lock_guard lock(mutex_);
    principals_[principal.name()] = principal;
  }

 private:
  std::string TokenOf(const std::string& name) {
    return "token-of-" + name + "-" + std::to_string(++tokens_[name]);
  }

  const ListAuditFunction list_audit_;
  std::mutex mutex_;
  std::map<std::string, v1::Principal> principals_;
  std::map<std::string, int> tokens_;  // how many each principal has had
};

}  // namespace pelab::client
