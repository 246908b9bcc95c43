#include "client/document.h"

#include "client/filter.h"
#include "core/base/file.h"
#include "core/base/status.h"
#include "core/rpc/status.h"
#include "core/views/text.h"

namespace pelab::client {
namespace {

absl::Status ToStatus(const std::vector<spec::Violation>& violations) {
  v1::Violations message;
  for (const spec::Violation& violation : violations) {
    v1::Violation& v = *message.add_violations();
    v.set_line(violation.line);
    v.set_column(violation.column);
    v.set_path(violation.path);
    v.set_value(violation.value);
    v.set_allowed(violation.allowed);
    v.set_message(violation.message);
  }
  return rpc::ViolationsError(message);
}

}  // namespace

absl::StatusOr<Document> LoadDocument(const std::string& path,
                                      const std::vector<std::string>& set_flags) {
  Document document;
  document.file_name = path;
  std::vector<spec::Override> overrides;
  for (const std::string& flag : set_flags) {
    PELAB_ASSIGN_OR_RETURN(v1::Override parsed, ParseOverride(flag));
    overrides.push_back({parsed.field(), parsed.value()});
    document.overrides.push_back(std::move(parsed));
  }
  PELAB_ASSIGN_OR_RETURN(document.text, ReadFile(path, spec::kMaxDocumentBytes));
  spec::SweepResult result = spec::ParseSweep(document.text, overrides);
  if (!result.sweep) return ToStatus(result.violations);
  document.sweep = *std::move(result.sweep);
  return document;
}

v1::SubmitRequest SubmitRequestOf(const Document& document, const std::string& client_token,
                                  int priority, bool fresh) {
  v1::SubmitRequest request;
  request.set_document(document.text);
  request.set_file_name(document.file_name);
  for (const v1::Override& override_field : document.overrides)
    *request.add_overrides() = override_field;
  request.set_client_token(client_token);
  request.set_priority(priority);
  request.set_fresh(fresh);
  return request;
}

std::string CountsText(const v1::JobCounts& counts) {
  return Concat(counts.new_jobs(), " new, ", counts.stored(), " already stored, ",
                counts.in_flight(), " in flight, ", counts.failed_earlier(), " failed earlier",
                counts.failed_earlier() > 0 ? " (--fresh tries them again)" : "");
}

}  // namespace pelab::client
