// Versions of the protocol between workers and coordinators (proto/pelab/v1/fleet.proto, Session).
// A program of one release speaks the version of the release before too, so that coordinator and
// workers can be upgraded one after the other. Pure functions: thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "pelab/v1/fleet.pb.h"

namespace pelab::rpc {

// The versions that a program speaks; both ends belong to it.
struct ProtocolRange {
  int oldest = 0;
  int newest = 0;
};

// Version 2: Hello has protocol_max and features.
inline constexpr ProtocolRange kFleetProtocols{1, 2};

// A worker that fetches the files of an assignment before it starts the trainer. Only such workers
// get jobs with own encodings and own data.
inline constexpr std::string_view kFilesFeature = "files";

// "2", or "1 to 2".
std::string ToString(const ProtocolRange& range);

// The versions that the worker speaks. A worker of version 1 says only that one number.
ProtocolRange ProtocolsOf(const v1::Hello& hello);

// The newest version that both speak. FAILED_PRECONDITION names both ranges, and which of the two
// programs is the older one.
absl::StatusOr<int> ChooseProtocol(const ProtocolRange& worker, const ProtocolRange& coordinator);

}  // namespace pelab::rpc
