// Parses sweep documents as they are transmitted: text and overrides in, a checked sweep or typed
// violations out. The CLI checks a document here before it sends it, and the coordinator before it
// stores it, so both report the same violations. Pure: thread-safe.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/experiment/sweep.h"
#include "pelab/v1/common.pb.h"

namespace pelab::rpc {

// INVALID_ARGUMENT with v1::Violations (core/rpc/status.h) if the document is wrong or larger than
// experiment::kMaxDocumentBytes.
absl::StatusOr<experiment::Sweep> ParseSweepDocument(
    const std::string& document, const google::protobuf::RepeatedPtrField<v1::Override>& overrides);

// The same for a new document, which additionally must not have a number as its name. Only sweeps
// of earlier versions have such names.
absl::StatusOr<experiment::Sweep> ParseNewSweepDocument(
    const std::string& document, const google::protobuf::RepeatedPtrField<v1::Override>& overrides);

// The value of each field that the overrides set; the last one counts.
std::map<std::string, std::string> ByField(
    const google::protobuf::RepeatedPtrField<v1::Override>& overrides);

// INVALID_ARGUMENT with the first hundred of the violations.
absl::Status ToStatus(const std::vector<experiment::Violation>& violations);

// The sweep's analyses with their parameters resolved.
std::vector<v1::Analysis> AnalysesOf(const experiment::Sweep& sweep);

}  // namespace pelab::rpc
