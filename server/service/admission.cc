#include "server/service/admission.h"

#include <algorithm>
#include <thread>

#include "core/base/status.h"
#include "server/limits.h"

namespace pelab::service {
namespace {

// Workers' events and small pages find the other half free.
int HalfOfProcessors() {
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / 2);
}

}  // namespace

Admission::Admission(const access::Gate& gate)
    : gate_(gate),
      documents_(HalfOfProcessors(), limits::kRequestsWaiting),
      large_pages_(HalfOfProcessors(), limits::kRequestsWaiting),
      small_pages_(limits::kPagesAtOnce, limits::kRequestsWaiting) {}

absl::StatusOr<Turns::Turn> Admission::Document(const grpc::ServerContext& context) {
  return Take(documents_, context);
}

absl::StatusOr<Turns::Turn> Admission::Page(const grpc::ServerContext& context,
                                            const v1::Page& page) {
  return Take(page.limit() > limits::kRowsOfSmallPage ? large_pages_ : small_pages_, context);
}

// Without principals, each connection is a caller.
absl::StatusOr<Turns::Turn> Admission::Take(Turns& turns, const grpc::ServerContext& context) {
  PELAB_ASSIGN_OR_RETURN(const access::Caller caller, gate_.CallerOf(context));
  return turns.Take(caller.name.empty() ? context.peer() : caller.name,
                    [&context] { return context.IsCancelled(); });
}

}  // namespace pelab::service
