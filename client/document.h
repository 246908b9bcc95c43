// Sweep files on the command line.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/experiment/sweep.h"
#include "pelab/v1/sweeps.pb.h"

namespace CLI {
class App;
}  // namespace CLI

namespace pelab::client {

struct Document {
  std::string text;
  std::string file_name;
  google::protobuf::RepeatedPtrField<v1::Override> overrides;
  experiment::Sweep sweep;  // checked
};

// The options that `run` and `submit` share.
struct DocumentOptions {
  std::string file;
  std::vector<std::string> set;  // --set
  std::string name;              // --name: in place of the document's; empty: the document's
};
// How a document is submitted.
struct SubmitOptions {
  int priority = 0;
  bool fresh = false;
  bool new_sweep = false;  // --new
};
void AddDocumentFlags(CLI::App* app, DocumentOptions& document, SubmitOptions& submit);

// Reads and checks a sweep file with its --set flags, here, without a coordinator. NOT_FOUND and
// the like for the file; INVALID_ARGUMENT with violations (rpc::GetViolations) for what it says.
absl::StatusOr<Document> LoadDocument(const DocumentOptions& options);

v1::SubmitRequest SubmitRequestOf(const Document& document, const std::string& client_token,
                                  const SubmitOptions& options);

// "going on with sweep 2 quick: 3 succeeded, 9 to go": of a submission that made no sweep.
std::string WentOnText(const v1::SubmitResponse& response, const v1::Sweep& now);

// "12 new, 0 already stored, 0 in flight, 0 failed earlier", and what is done about the analyses
// that stored jobs lack.
std::string CountsText(const v1::JobCounts& counts);

}  // namespace pelab::client
