// Sweep documents as they travel: text and overrides in, a checked sweep or typed violations out.
// The CLI checks with it before it sends, the coordinator before it stores, so both say the same.
// Pure: thread-safe.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/experiment/sweep.h"
#include "pelab/v1/common.pb.h"

namespace pelab::rpc {

// INVALID_ARGUMENT with v1::Violations (core/rpc/status.h) for a document that is wrong or larger
// than experiment::kMaxDocumentBytes.
absl::StatusOr<experiment::Sweep> ParseSweepDocument(
    const std::string& document, const google::protobuf::RepeatedPtrField<v1::Override>& overrides);

// Of a document that is new: also where its name is a number, which only sweeps of earlier versions
// have.
absl::StatusOr<experiment::Sweep> ParseNewSweepDocument(
    const std::string& document, const google::protobuf::RepeatedPtrField<v1::Override>& overrides);

// Its analyses with their parameters resolved.
std::vector<v1::Analysis> AnalysesOf(const experiment::Sweep& sweep);

}  // namespace pelab::rpc
