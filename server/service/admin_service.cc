#include "server/service/admin_service.h"

#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/access/role.h"
#include "core/access/token.h"
#include "core/base/status.h"
#include "core/base/utf8.h"
#include "core/rpc/status.h"
#include "server/limits.h"
#include "server/service/blocking.h"

namespace pelab::service {
namespace {

constexpr absl::Duration kPreviousTokenLives = absl::Hours(1);
constexpr double kMostShare = 1000;
constexpr int kMostPriority = 1000;

v1::Principal PrincipalToProto(const store::Principal& principal) {
  v1::Principal out;
  out.set_name(principal.name);
  out.set_role(principal.role);
  out.set_certificate_uri(principal.certificate_uri);
  out.set_created_at_ms(principal.created_at);
  out.set_expires_at_ms(principal.expires_at);
  out.set_disabled(principal.disabled);
  *out.mutable_limits() = principal.limits;
  out.set_gpu_seconds_used(principal.gpu_seconds_used);
  return out;
}

absl::Status CheckRole(v1::Role role) {
  if (role != v1::ROLE_UNSPECIFIED && v1::Role_IsValid(role)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("role ", static_cast<int>(role),
                   " is unknown; known: reader, submitter, operator, worker, scaler"));
}

template <typename T>
absl::Status CheckLimit(absl::string_view name, T value, double most) {
  if (std::isfinite(static_cast<double>(value)) && value >= 0 && static_cast<double>(value) <= most)
    return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("invalid ", name, " ", value, "; allowed: 0 (no limit) to ", most));
}

absl::Status CheckLimits(const v1::PrincipalLimits& limits) {
  constexpr double kMostCounted = 1e9;
  PELAB_RETURN_IF_ERROR(CheckLimit("share", limits.share(), kMostShare));
  PELAB_RETURN_IF_ERROR(CheckLimit("max_slots", limits.max_slots(), kMostCounted));
  PELAB_RETURN_IF_ERROR(CheckLimit("max_queued", limits.max_queued(), kMostCounted));
  PELAB_RETURN_IF_ERROR(CheckLimit("gpu_seconds", limits.gpu_seconds(), 1e12));
  return CheckLimit("max_priority", limits.max_priority(), kMostPriority);
}

absl::Status CheckExpiry(std::int64_t expires_at, std::int64_t now) {
  if (expires_at == 0 || expires_at > now) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("invalid time of expiry ", expires_at,
                   " (Unix milliseconds); allowed: a time to come, or 0 for never"));
}

absl::Status CheckNewName(const std::string& name) {
  PELAB_RETURN_IF_ERROR(access::CheckPrincipalName(name));
  if (name != access::kShared && name != access::kPages) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the name ", name, " is the coordinator's own; choose another name for the principal"));
}

v1::PrincipalLimits LimitsOf(const v1::ChangePrincipalRequest& request) {
  v1::PrincipalLimits limits;
  limits.set_share(request.share());
  limits.set_max_slots(request.max_slots());
  limits.set_max_queued(request.max_queued());
  limits.set_gpu_seconds(request.gpu_seconds());
  limits.set_max_priority(request.max_priority());
  return limits;
}

absl::Status Refused(store::PrincipalStored::Refusal refusal, const std::string& name) {
  switch (refusal) {
    case store::PrincipalStored::kNone:
      return absl::OkStatus();
    case store::PrincipalStored::kTaken:
      return absl::AlreadyExistsError(
          absl::StrCat("there is a principal named ", name, ", or one with this certificate"));
    case store::PrincipalStored::kUnknown:
      return absl::NotFoundError(absl::StrCat("there is no principal \"", Escape(Shorten(name, 80)),
                                              "\"; `pelab admin principal list` lists them"));
    case store::PrincipalStored::kNotOperator:
      return absl::FailedPreconditionError(
          "the first principal must be an operator (--role operator): from then on every call "
          "needs a principal, and nobody could add another one");
    case store::PrincipalStored::kLastOperator:
      return absl::FailedPreconditionError(
          absl::StrCat(name, " is the last operator that can call; add another one first"));
    case store::PrincipalStored::kCertificate:
      return absl::FailedPreconditionError(
          absl::StrCat(name, " shows a certificate and has no token; renew the certificate"));
  }
  return absl::InternalError("unknown refusal");
}

}  // namespace

grpc::Status AdminService::WhoAmI(grpc::ServerContext* context, const v1::WhoAmIRequest*,
                                  v1::WhoAmIResponse* response) {
  return rpc::ToGrpc(DoWhoAmI(*context, *response));
}
grpc::Status AdminService::AddPrincipal(grpc::ServerContext* context,
                                        const v1::AddPrincipalRequest* request,
                                        v1::PrincipalToken* response) {
  return rpc::ToGrpc(DoAdd(*context, *request, *response));
}
grpc::Status AdminService::ListPrincipals(grpc::ServerContext*, const v1::ListPrincipalsRequest*,
                                          v1::ListPrincipalsResponse* response) {
  return rpc::ToGrpc(DoList(*response));
}
grpc::Status AdminService::ChangePrincipal(grpc::ServerContext* context,
                                           const v1::ChangePrincipalRequest* request,
                                           v1::Principal* response) {
  return rpc::ToGrpc(DoChange(*context, *request, *response));
}
grpc::Status AdminService::RotateToken(grpc::ServerContext* context,
                                       const v1::RotateTokenRequest* request,
                                       v1::PrincipalToken* response) {
  return rpc::ToGrpc(DoRotate(*context, *request, *response));
}

absl::Status AdminService::DoWhoAmI(const grpc::ServerContext& context,
                                    v1::WhoAmIResponse& response) {
  PELAB_ASSIGN_OR_RETURN(const access::Caller caller, parts_.gate.CallerOf(context));
  if (caller.name.empty()) return absl::OkStatus();
  for (const store::Principal& principal : parts_.gate.principals().All()) {
    if (principal.name == caller.name) *response.mutable_principal() = PrincipalToProto(principal);
  }
  // One that is not stored: whoever has the token of --token-file.
  response.mutable_principal()->set_name(caller.name);
  response.mutable_principal()->set_role(caller.role);
  return absl::OkStatus();
}

absl::StatusOr<store::Principal> AdminService::Store(store::Write write,
                                                     const access::Caller& caller,
                                                     absl::string_view method,
                                                     const std::string& name) {
  // Whoever adds the first principal is nobody yet, and is recorded all the same.
  access::Caller recorded = caller;
  if (recorded.name.empty()) recorded.at = Now();
  std::optional<store::RecordAct> act = recorded.Act(method, absl::StrCat("principal ", name));
  if (!act) {
    act = store::RecordAct{.at = recorded.at,
                           .method = std::string(method),
                           .target = absl::StrCat("principal ", name)};
  }
  PELAB_ASSIGN_OR_RETURN(const store::WriteResult result,
                         AppendAndWait(
                             parts_.journal, std::move(write),
                             [this](const store::WriteResult& stored) {
                               const auto& answer = std::get<store::PrincipalStored>(stored);
                               if (answer.refusal != store::PrincipalStored::kNone) return;
                               parts_.gate.principals().Set(answer.principal);
                               if (parts_.changed) parts_.changed(answer.principal);
                             },
                             std::move(act)));
  const auto& answer = std::get<store::PrincipalStored>(result);
  PELAB_RETURN_IF_ERROR(Refused(answer.refusal, name));
  return answer.principal;
}

absl::Status AdminService::DoAdd(const grpc::ServerContext& context,
                                 const v1::AddPrincipalRequest& request,
                                 v1::PrincipalToken& response) {
  PELAB_ASSIGN_OR_RETURN(const access::Caller caller, parts_.gate.CallerOf(context));
  PELAB_RETURN_IF_ERROR(CheckNewName(request.name()));
  PELAB_RETURN_IF_ERROR(CheckRole(request.role()));
  PELAB_RETURN_IF_ERROR(CheckLimits(request.limits()));
  PELAB_RETURN_IF_ERROR(CheckExpiry(request.expires_at_ms(), Now()));
  if (!request.certificate_uri().empty()) {
    PELAB_RETURN_IF_ERROR(access::CheckCertificateUri(request.certificate_uri()));
  }
  if (!parts_.can_identify) {
    return absl::FailedPreconditionError(
        "this coordinator runs with --insecure, where nobody can be told from anybody else; start "
        "it with --tls-cert and --tls-key, or on this machine alone");
  }
  if (parts_.gate.principals().size() >= limits::kPrincipals) {
    return absl::ResourceExhaustedError(
        absl::StrCat("there are ", limits::kPrincipals, " principals, and no more are allowed"));
  }
  store::AddPrincipal write{.principal = {.name = request.name(),
                                          .role = request.role(),
                                          .certificate_uri = request.certificate_uri(),
                                          .created_at = Now(),
                                          .expires_at = request.expires_at_ms(),
                                          .limits = request.limits()},
                            .other_operator = parts_.gate.principals().has_shared()};
  if (request.certificate_uri().empty()) {
    response.set_token(access::NewToken());
    write.principal.token_sha256 = access::TokenHash(response.token());
  }
  const absl::StatusOr<store::Principal> stored =
      Store(std::move(write), caller, "Admin/AddPrincipal", request.name());
  if (!stored.ok()) {
    response.clear_token();
    return stored.status();
  }
  *response.mutable_principal() = PrincipalToProto(*stored);
  return absl::OkStatus();
}

absl::Status AdminService::DoList(v1::ListPrincipalsResponse& response) {
  PELAB_ASSIGN_OR_RETURN(const auto reader, parts_.readers.Take());
  PELAB_ASSIGN_OR_RETURN(const auto uses, reader->UseOfPrincipals());
  for (const store::Principal& principal : parts_.gate.principals().All()) {
    v1::Principal& out = *response.add_principals() = PrincipalToProto(principal);
    const auto use = uses.find(principal.name);
    if (use == uses.end()) continue;
    out.set_gpu_seconds_used(use->second.gpu_seconds);
    out.set_queued_jobs(use->second.queued);
    out.set_running_jobs(use->second.running);
  }
  return absl::OkStatus();
}

absl::Status AdminService::DoChange(const grpc::ServerContext& context,
                                    const v1::ChangePrincipalRequest& request,
                                    v1::Principal& response) {
  PELAB_ASSIGN_OR_RETURN(const access::Caller caller, parts_.gate.CallerOf(context));
  if (request.has_role()) PELAB_RETURN_IF_ERROR(CheckRole(request.role()));
  PELAB_RETURN_IF_ERROR(CheckLimits(LimitsOf(request)));
  if (request.has_expires_at_ms()) {
    PELAB_RETURN_IF_ERROR(CheckExpiry(request.expires_at_ms(), Now()));
  }
  PELAB_ASSIGN_OR_RETURN(
      const store::Principal stored,
      Store(store::ChangePrincipal{.change = request,
                                   .other_operator = parts_.gate.principals().has_shared(),
                                   .now = Now()},
            caller, "Admin/ChangePrincipal", Shorten(request.name(), 80)));
  response = PrincipalToProto(stored);
  return absl::OkStatus();
}

absl::Status AdminService::DoRotate(const grpc::ServerContext& context,
                                    const v1::RotateTokenRequest& request,
                                    v1::PrincipalToken& response) {
  PELAB_ASSIGN_OR_RETURN(const access::Caller caller, parts_.gate.CallerOf(context));
  PELAB_RETURN_IF_ERROR(CheckExpiry(request.expires_at_ms(), Now()));
  const std::string token = access::NewToken();
  store::ChangePrincipal write{
      .token_sha256 = access::TokenHash(token),
      .previous_until =
          request.revoke_previous() ? 0 : Now() + absl::ToInt64Milliseconds(kPreviousTokenLives),
      .other_operator = parts_.gate.principals().has_shared(),
      .now = Now()};
  write.change.set_name(request.name());
  write.change.set_expires_at_ms(request.expires_at_ms());
  PELAB_ASSIGN_OR_RETURN(
      const store::Principal stored,
      Store(std::move(write), caller, "Admin/RotateToken", Shorten(request.name(), 80)));
  *response.mutable_principal() = PrincipalToProto(stored);
  response.set_token(token);
  return absl::OkStatus();
}

grpc::Status AdminService::ListAudit(grpc::ServerContext*, const v1::ListAuditRequest* request,
                                     v1::ListAuditResponse* response) {
  auto reader = parts_.readers.Take();
  if (!reader.ok()) return rpc::ToGrpc(reader.status());
  auto rows = (*reader)->ListAudit(*request);
  if (!rows.ok()) return rpc::ToGrpc(rows.status());
  *response = *std::move(rows);
  return grpc::Status::OK;
}

}  // namespace pelab::service
