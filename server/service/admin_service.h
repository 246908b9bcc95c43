// pelab.v1.Admin: principals, their tokens, and the record of what they did.
#pragma once

#include <functional>

#include "absl/status/statusor.h"
#include "core/base/clock.h"
#include "core/db/read/reader_pool.h"
#include "pelab/v1/admin.grpc.pb.h"
#include "server/access/gate.h"
#include "server/store/journal.h"

namespace pelab::service {

class AdminService final : public v1::Admin::Service {
 public:
  // All of these must outlive the service.
  struct Parts {
    const Clock& clock;
    store::Journal& journal;
    db::ReaderPool& readers;
    access::Gate& gate;
    // Calls over every address show who makes them. Otherwise there can be no principals.
    bool can_identify = true;
    // Called on the writer thread when a principal was added or changed.
    std::function<void(const store::Principal&)> changed;
  };
  explicit AdminService(Parts parts) : parts_(std::move(parts)) {}

  grpc::Status WhoAmI(grpc::ServerContext* context, const v1::WhoAmIRequest* request,
                      v1::WhoAmIResponse* response) override;
  grpc::Status AddPrincipal(grpc::ServerContext* context, const v1::AddPrincipalRequest* request,
                            v1::PrincipalToken* response) override;
  grpc::Status ListPrincipals(grpc::ServerContext* context,
                              const v1::ListPrincipalsRequest* request,
                              v1::ListPrincipalsResponse* response) override;
  grpc::Status ChangePrincipal(grpc::ServerContext* context,
                               const v1::ChangePrincipalRequest* request,
                               v1::Principal* response) override;
  grpc::Status RotateToken(grpc::ServerContext* context, const v1::RotateTokenRequest* request,
                           v1::PrincipalToken* response) override;
  grpc::Status ListAudit(grpc::ServerContext* context, const v1::ListAuditRequest* request,
                         v1::ListAuditResponse* response) override;

 private:
  absl::Status DoWhoAmI(const grpc::ServerContext& context, v1::WhoAmIResponse& response);
  absl::Status DoAdd(const grpc::ServerContext& context, const v1::AddPrincipalRequest& request,
                     v1::PrincipalToken& response);
  absl::Status DoList(v1::ListPrincipalsResponse& response);
  absl::Status DoChange(const grpc::ServerContext& context,
                        const v1::ChangePrincipalRequest& request, v1::Principal& response);
  absl::Status DoRotate(const grpc::ServerContext& context, const v1::RotateTokenRequest& request,
                        v1::PrincipalToken& response);
  absl::StatusOr<store::Principal> Store(store::Write write, const access::Caller& caller,
                                         absl::string_view method, const std::string& name);
  std::int64_t Now() const { return absl::ToUnixMillis(parts_.clock.Wall()); }

  Parts parts_;
};

}  // namespace pelab::service
