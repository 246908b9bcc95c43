// pelab.v1.Claims: registering claim sheets and settling them round by round (server/settle). Each
// call has a thread of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/mutex.h"
#include "pelab/v1/claims.grpc.pb.h"
#include "server/notify/budget.h"
#include "server/service/sweep_parts.h"
#include "server/settle/advance.h"
#include "server/settle/sheets.h"

namespace pelab::service {

class ClaimsService final : public v1::Claims::Service {
 public:
  // `on_budget` is told of each settling that its budget has stopped. Thread-safe.
  using OnBudget = std::function<void(const notify::SpentBudget&)>;
  ClaimsService(const SweepParts& parts, OnBudget on_budget)
      : parts_(parts), on_budget_(std::move(on_budget)) {}

  grpc::Status RegisterSheet(grpc::ServerContext* context, const v1::RegisterSheetRequest* request,
                             v1::Settlement* response) override;
  grpc::Status Advance(grpc::ServerContext* context, const v1::AdvanceRequest* request,
                       v1::Settlement* response) override;
  grpc::Status ListSheets(grpc::ServerContext* context, const v1::ListSheetsRequest* request,
                          v1::ListSheetsResponse* response) override;
  grpc::Status GetSheet(grpc::ServerContext* context, const v1::GetSheetRequest* request,
                        v1::Sheet* response) override;
  grpc::Status ListSheetClaims(grpc::ServerContext* context,
                               const v1::ListSheetClaimsRequest* request,
                               v1::ListSheetClaimsResponse* response) override;

  settle::Sheets& sheets() { return sheets_; }

 private:
  absl::Status DoRegister(const grpc::ServerContext& context,
                          const v1::RegisterSheetRequest& request, v1::Settlement& response);
  absl::Status DoAdvance(const grpc::ServerContext& context, const v1::AdvanceRequest& request,
                         v1::Settlement& response);
  // Takes all steps of the request.
  absl::StatusOr<settle::Answer> Run(const access::Caller& caller, db::Reader& reader,
                                     settle::Advance& advance);
  // Stores the change and tells the scheduler and the expander what follows from it.
  absl::Status Store(const access::Caller& caller, db::Reader& reader, settle::Advance& advance,
                     settle::Change change);
  // Tells on_budget_ of a stop, unless it knows of the same one already.
  void TellStopped(const settle::Answer& answer, const std::string& stopped_by);

  SweepParts parts_;
  const OnBudget on_budget_;
  settle::Sheets sheets_;
  Mutex mutex_;
  // The last stop of each sheet that was told: after how many rounds, and why.
  std::map<std::int64_t, std::pair<std::int64_t, std::string>> told_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pelab::service
