// Sweep files on the command line.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/spec/sweep.h"
#include "pelab/v1/sweeps.pb.h"

namespace pelab::client {

struct Document {
  std::string text;
  std::string file_name;
  google::protobuf::RepeatedPtrField<v1::Override> overrides;
  spec::Sweep sweep;  // checked
};

// Reads and checks a sweep file with its --set flags, here, without a coordinator. NOT_FOUND and
// the like for the file; INVALID_ARGUMENT with violations (rpc::GetViolations) for what it says.
absl::StatusOr<Document> LoadDocument(const std::string& path,
                                      const std::vector<std::string>& set_flags);

v1::SubmitRequest SubmitRequestOf(const Document& document, const std::string& client_token,
                                  int priority, bool fresh);

// "12 new, 0 already stored, 0 in flight, 0 failed earlier", and what is done about the analyses
// that stored jobs lack.
std::string CountsText(const v1::JobCounts& counts);

}  // namespace pelab::client
