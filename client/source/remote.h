// A coordinator as a data source, over gRPC.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/source/data_source.h"
#include "core/rpc/channel.h"
#include "core/rpc/credentials.h"

namespace pelab::client {

// Connects within `timeout`. INVALID_ARGUMENT for a malformed address; UNAVAILABLE ("no coordinator
// at …") if nobody answers.
absl::StatusOr<std::unique_ptr<Coordinator>> ConnectTo(
    const std::string& address, const rpc::ClientSecurity& security, absl::Duration timeout,
    rpc::OnRefusal on_refusal = rpc::OnRefusal::kFail);

}  // namespace pelab::client
