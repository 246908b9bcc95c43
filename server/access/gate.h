// Decides about every call before its handler sees it: who makes it, whether its role suffices, and
// whether it is one too many. Without principals it lets everything through.
#pragma once

#include <grpcpp/security/auth_metadata_processor.h>
#include <grpcpp/server_context.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/clock.h"
#include "core/rpc/secrets.h"
#include "server/access/caller.h"
#include "server/access/methods.h"
#include "server/access/open_calls.h"
#include "server/access/principals.h"
#include "server/access/rates.h"
#include "server/access/refusals.h"
#include "server/store/journal.h"

namespace pelab::access {

// Thread-safe. It must outlive the server.
class Gate {
 public:
  // A caller with the `shared_token` is an operator; it may be null.
  Gate(const Clock& clock, store::Journal& journal, Methods methods,
       std::shared_ptr<rpc::TokenFile> shared_token);

  Principals& principals() { return principals_; }
  const Principals& principals() const { return principals_; }

  // For the credentials of every listener. It refuses calls with UNAUTHENTICATED, PERMISSION_DENIED
  // or RESOURCE_EXHAUSTED; the message says what to do.
  std::shared_ptr<grpc::AuthMetadataProcessor> Processor();
  OpenCalls& open_calls() { return open_calls_; }
  // `count` is called for each call that the processor refuses, with its path
  // ("/pelab.v1.Sweeps/Submit"), on any thread. To be called before there are calls.
  void CountRefusals(std::function<void(absl::string_view path, absl::StatusCode code)> count) {
    count_refusal_ = std::move(count);
  }
  // Records the refusals of the last second too. To be called when calls are not answered any more,
  // and before the journal stops.
  void RecordRefusals() { refusals_.FlushAll(); }
  // For grpc::ServerBuilder. Ends open streams whose principal may not make them any more.
  std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> Interceptor() {
    return open_calls_.Factory();
  }

  // The maker of a call that the processor let through. UNAUTHENTICATED if that has changed since.
  absl::StatusOr<Caller> CallerOf(const grpc::ServerContextBase& context) const;

 private:
  class PathProcessor;
  absl::Status Decide(absl::string_view path, const Proof& proof, store::RecordAct& act);
  absl::Status MayCall(const store::Principal& principal, const Methods::Method& method);

  const Clock& clock_;
  const Methods methods_;
  Principals principals_;
  Rates rates_;
  Refusals refusals_;
  rpc::WrongTokens wrong_{"calls"};
  std::function<void(absl::string_view path, absl::StatusCode code)> count_refusal_;
  OpenCalls open_calls_;  // the last: its thread uses the others
};

}  // namespace pelab::access
