#include "server/access/gate.h"

#include <grpc/grpc_security_constants.h>
#include <grpcpp/security/auth_context.h>

#include <map>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/access/role.h"
#include "core/access/too_many_calls.h"
#include "core/access/traceparent.h"
#include "core/base/status.h"
#include "core/rpc/status.h"
#include "server/limits.h"

namespace pelab::access {
namespace {

using Metadata = std::multimap<grpc::string_ref, grpc::string_ref>;

constexpr char kAuthorization[] = "authorization";
constexpr absl::string_view kBearer = "Bearer ";
constexpr absl::string_view kHealth = "/grpc.health.v1.Health/";
constexpr absl::string_view kReflection = "/grpc.reflection.";
constexpr char kWorkersToken[] =
    "; `pelab admin principal add NAME --role worker --token-out FILE` makes a token for one";
constexpr absl::string_view kUriScheme = "pelab://";
constexpr absl::string_view kInProcess = "inproc";  // the peer of the coordinator's own pages

absl::string_view Value(const Metadata& metadata, const char* key) {
  const auto found = metadata.find(key);
  if (found == metadata.end()) return {};
  return {found->second.data(), found->second.size()};
}

Proof ProofOf(const Metadata& metadata, const grpc::AuthContext* context) {
  Proof proof;
  const absl::string_view given = Value(metadata, kAuthorization);
  if (absl::StartsWith(given, kBearer)) {
    proof.token = std::string(given.substr(kBearer.size()));
  } else if (!given.empty()) {
    proof.token = "";  // nobody's
  }
  if (context == nullptr) return proof;
  for (const grpc::string_ref& uri : context->FindPropertyValues(GRPC_X509_SAN_PROPERTY_NAME)) {
    const absl::string_view text(uri.data(), uri.size());
    if (absl::StartsWith(text, kUriScheme)) proof.cert_uris.emplace_back(text);
  }
  return proof;
}

std::string PeerOf(const grpc::AuthContext* context) {
  // The address is known to handlers only; a certificate is.
  for (const grpc::string_ref& name : context->GetPeerIdentity()) {
    return std::string(name.data(), name.size());
  }
  return "";
}

// Operators alone see which methods there are.
Methods::Method Reflection() {
  Methods::Method method{.name = "reflection", .needs = {}, .streams = true};
  method.needs.set_role(v1::ROLE_OPERATOR);
  return method;
}

}  // namespace

class Gate::PathProcessor final : public grpc::AuthMetadataProcessor {
 public:
  explicit PathProcessor(Gate& gate) : gate_(gate) {}

  bool IsBlocking() const override { return false; }

  // Consumes nothing: CallerOf looks at the same metadata. Nor does it add properties to the
  // context, which belongs to the connection and would keep those of every call.
  grpc::Status Process(const InputMetadata& metadata, grpc::AuthContext* context, OutputMetadata*,
                       OutputMetadata*) override {
    const absl::string_view path = Value(metadata, ":path");
    if (!gate_.principals_.on() || absl::StartsWith(path, kHealth)) return grpc::Status::OK;
    store::RecordAct act{.at = absl::ToUnixMillis(gate_.clock_.Wall()),
                         .peer = PeerOf(context),
                         .method = std::string(path),
                         .trace_id = TraceIdOf(Value(metadata, "traceparent"))};
    const absl::Status status = gate_.Decide(path, ProofOf(metadata, context), act);
    if (status.ok()) return grpc::Status::OK;
    if (gate_.count_refusal_) gate_.count_refusal_(path, status.code());
    act.outcome = absl::StatusCodeToString(status.code());
    gate_.refusals_.Add(std::move(act));
    return rpc::ToGrpc(status);
  }

 private:
  Gate& gate_;
};

Gate::Gate(const Clock& clock, store::Journal& journal, Methods methods,
           std::shared_ptr<rpc::TokenFile> shared_token)
    : clock_(clock),
      methods_(std::move(methods)),
      principals_(clock, std::move(shared_token)),
      rates_(clock, limits::kCallsPerSecond, limits::kCallsAtOnce),
      refusals_(clock, journal),
      open_calls_(
          [this](const grpc::ServerContextBase& context) -> std::optional<std::string> {
            const absl::StatusOr<Caller> caller = CallerOf(context);
            return caller.ok() ? std::optional(caller->name) : std::nullopt;
          },
          [this] { refusals_.Flush(); }) {}

std::shared_ptr<grpc::AuthMetadataProcessor> Gate::Processor() {
  return std::make_shared<PathProcessor>(*this);
}

absl::Status Gate::Decide(absl::string_view path, const Proof& proof, store::RecordAct& act) {
  const absl::StatusOr<store::Principal> principal = principals_.Find(proof);
  if (!principal.ok()) {
    if (proof.token) wrong_.Add();
    return principal.status();
  }
  act.principal = principal->name;
  if (absl::StartsWith(path, kReflection)) return MayCall(*principal, Reflection());
  const Methods::Method* const method = methods_.Find(path);
  if (method == nullptr) return absl::OkStatus();  // gRPC answers that there is no such method
  act.method = method->name;
  return MayCall(*principal, *method);
}

absl::Status Gate::MayCall(const store::Principal& principal, const Methods::Method& method) {
  if (!Suffices(principal.role, method.needs)) {
    const v1::Role needed = method.needs.role();
    return absl::PermissionDeniedError(
        absl::StrCat(principal.name, " is ", principal.role == v1::ROLE_OPERATOR ? "an " : "a ",
                     NameOf(principal.role), "; ", method.name, " is for ",
                     needed == v1::ROLE_OPERATOR ? "an " : "a ", NameOf(needed),
                     needed == v1::ROLE_WORKER ? kWorkersToken : ""));
  }
  // Operators import and maintain, and workers report: their calls follow from the work there is.
  if (principal.role == v1::ROLE_OPERATOR || principal.role == v1::ROLE_WORKER) {
    return absl::OkStatus();
  }
  if (!rates_.Take(principal.name)) {
    return absl::ResourceExhaustedError(
        absl::StrCat(kTooManyCalls, principal.name, " makes more than ", limits::kCallsPerSecond,
                     " a second; allowed: ", limits::kCallsAtOnce, " at once and ",
                     limits::kCallsPerSecond, " a second"));
  }
  if (method.streams && open_calls_.StreamsOf(principal.name) >= limits::kStreamsOfPrincipal) {
    return absl::ResourceExhaustedError(
        absl::StrCat(principal.name, " has ", limits::kStreamsOfPrincipal,
                     " streams open; allowed: ", limits::kStreamsOfPrincipal, "; end one of them"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Caller> Gate::CallerOf(const grpc::ServerContextBase& context) const {
  if (!principals_.on()) return Caller{};
  const Metadata& metadata = context.client_metadata();
  Caller caller{.name = kPages,
                .peer = context.peer(),
                .trace_id = TraceIdOf(Value(metadata, "traceparent")),
                .at = absl::ToUnixMillis(clock_.Wall())};
  if (absl::StartsWith(caller.peer, kInProcess)) return caller;
  const std::shared_ptr<const grpc::AuthContext> auth = context.auth_context();
  PELAB_ASSIGN_OR_RETURN(const store::Principal principal,
                         principals_.Find(ProofOf(metadata, auth.get())));
  caller.name = principal.name;
  caller.role = principal.role;
  caller.limits = principal.limits;
  return caller;
}

}  // namespace pelab::access
