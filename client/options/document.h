// Sweep files given on the command line.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/options/own_files.h"
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
  experiment::Sweep sweep;  // parsed and checked
  std::vector<OwnFile>
      own_files;  // those that the document names; `overrides` says what they declare
};

// The options that `run` and `submit` share.
struct DocumentOptions {
  std::string file;
  std::vector<std::string> set;  // --set
  std::string name;              // --name: replaces the document's name; empty: keep it
};
// Options of the submission itself.
struct SubmitOptions {
  int priority = 0;
  bool fresh = false;
  bool new_sweep = false;  // --new
};
void AddDocumentFlags(CLI::App* app, DocumentOptions& document, SubmitOptions& submit);

// Reads a sweep file, applies its --set flags and checks the result. Needs no coordinator. File
// errors keep their code (NOT_FOUND and so on); INVALID_ARGUMENT with violations
// (rpc::GetViolations) if the content is wrong.
absl::StatusOr<Document> LoadDocument(const DocumentOptions& options);

v1::SubmitRequest SubmitRequestOf(const Document& document, const std::string& client_token,
                                  const SubmitOptions& options);

// "going on with sweep 2 quick: 3 succeeded, 9 to go": for a submission that continued an existing
// sweep.
std::string WentOnText(const v1::SubmitResponse& response, const v1::Sweep& now);

// "12 new, 0 already stored, 0 in flight, 0 failed earlier"; also says how many stored jobs get
// analyses that they lack, and how many cannot get them.
std::string CountsText(const v1::JobCounts& counts);

}  // namespace pelab::client
