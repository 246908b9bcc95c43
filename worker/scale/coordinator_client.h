// The coordinator by gRPC, as the scaler needs it.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "core/rpc/address.h"
#include "core/rpc/credentials.h"
#include "core/trace/span_file.h"
#include "worker/scale/scaler.h"

namespace pelab::scale {

// Connects when it is first asked. The role of a reader is enough to ask for demand and workers;
// reports need the role of a scaler. Calls that belong to a trace are recorded in `spans`, which
// must outlive the object; null: they are not. For one thread.
absl::StatusOr<std::unique_ptr<Coordinator>> MakeCoordinator(const rpc::Address& address,
                                                             const rpc::ClientSecurity& security,
                                                             trace::SpanFile* spans);

}  // namespace pelab::scale
