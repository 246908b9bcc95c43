#include "client/document.h"

#include "client/filter.h"
#include "core/base/file.h"
#include "core/base/status.h"
#include "core/rpc/sweep_document.h"
#include "core/views/text.h"

namespace pelab::client {
absl::StatusOr<Document> LoadDocument(const std::string& path,
                                      const std::vector<std::string>& set_flags) {
  Document document;
  document.file_name = path;
  for (const std::string& flag : set_flags) {
    PELAB_ASSIGN_OR_RETURN(*document.overrides.Add(), ParseOverride(flag));
  }
  PELAB_ASSIGN_OR_RETURN(document.text, ReadFile(path, spec::kMaxDocumentBytes));
  PELAB_ASSIGN_OR_RETURN(document.sweep,
                         rpc::ParseSweepDocument(document.text, document.overrides));
  return document;
}

v1::SubmitRequest SubmitRequestOf(const Document& document, const std::string& client_token,
                                  int priority, bool fresh) {
  v1::SubmitRequest request;
  request.set_document(document.text);
  request.set_file_name(document.file_name);
  *request.mutable_overrides() = document.overrides;
  request.set_client_token(client_token);
  request.set_priority(priority);
  request.set_fresh(fresh);
  return request;
}

std::string CountsText(const v1::JobCounts& counts) {
  std::string text =
      Concat(counts.new_jobs(), " new, ", counts.stored(), " already stored, ", counts.in_flight(),
             " in flight, ", counts.failed_earlier(), " failed earlier",
             counts.failed_earlier() > 0 ? " (pelab retry queues them again)" : "");
  if (counts.analysis_jobs() > 0) {
    text += Concat("; ", counts.analysis_jobs(),
                   " of the stored get analyses that they lack, without training");
  }
  if (counts.analysis_impossible() > 0) {
    text += Concat("; ", counts.analysis_impossible(),
                   " of the stored lack analyses and have no kept weights (--fresh trains them "
                   "again)");
  }
  return text;
}

}  // namespace pelab::client
