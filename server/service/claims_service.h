// pelab.v1.Claims: registering claim sheets and settling them round by round. Each call has a
// thread of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/mutex.h"
#include "pelab/v1/claims.grpc.pb.h"
#include "server/notify/budget.h"
#include "server/service/settlement.h"
#include "server/service/sweep_parts.h"

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

 private:
  absl::Status DoRegister(const grpc::ServerContext& context,
                          const v1::RegisterSheetRequest& request, v1::Settlement& response);
  absl::Status DoAdvance(const grpc::ServerContext& context, const v1::AdvanceRequest& request,
                         v1::Settlement& response);
  absl::StatusOr<StoredSheet> Load(db::Reader& reader, const std::string& sheet);
  // Binding a large sheet takes a second, and each call needs it.
  absl::StatusOr<std::shared_ptr<const claims::BoundSheet>> Bound(const v1::SheetRow& row);
  // Ends the round and returns true if all of its jobs are complete; otherwise fills `response`.
  absl::StatusOr<bool> EndOrWait(const access::Caller& caller, db::Reader& reader,
                                 const StoredSheet& sheet, bool again, v1::Settlement& response);
  absl::Status QueueAgain(const StoredSheet& sheet, const std::vector<Blocked>& blocked);
  absl::Status Begin(const access::Caller& caller, const TraceContext& trace, db::Reader& reader,
                     const StoredSheet& sheet, const claims::Round& round);
  absl::StatusOr<experiment::Sweep> SweepOf(db::Reader& reader, const StoredSheet& sheet,
                                            const TraceContext& trace, store::BeginRound& write);
  void TellScheduler(const store::SliceStored& jobs);
  // Tells on_budget_ of a stop, unless it knows of the same one already.
  void TellStopped(const StoredSheet& sheet, const std::string& stopped_by);

  SweepParts parts_;
  const OnBudget on_budget_;
  Mutex mutex_;
  // By hash, the one that was used last in front.
  std::list<std::pair<std::string, std::shared_ptr<const claims::BoundSheet>>> bound_
      ABSL_GUARDED_BY(mutex_);
  // The last stop of each sheet that was told: after how many rounds, and why.
  std::map<std::int64_t, std::pair<std::int64_t, std::string>> told_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pelab::service
