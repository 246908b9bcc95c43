#include "client/options/document.h"

#include <CLI/CLI.hpp>

#include "client/options/filter.h"
#include "core/base/file.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/experiment/sweep_name.h"
#include "core/render/text.h"
#include "core/rpc/sweep_document.h"

namespace pelab::client {
namespace {

std::string JobsText(const v1::StateCounts& jobs) {
  std::string text = Concat(jobs.succeeded(), " succeeded");
  const std::uint64_t open = jobs.queued() + jobs.assigned() + jobs.running();
  if (open > 0) text += Concat(", ", open, " to go");
  if (jobs.failed() > 0) {
    text += Concat(", ", jobs.failed(), " failed (pelab retry queues them again)");
  }
  if (jobs.cancelled() > 0) text += Concat(", ", jobs.cancelled(), " cancelled");
  return text;
}

}  // namespace

void AddDocumentFlags(CLI::App* app, DocumentOptions& document, SubmitOptions& submit) {
  app->add_option("SWEEP.yaml", document.file, "the sweep file")->required();
  app->add_option("--set", document.set,
                  "override a field: model.layers=4; repeatable [default: none]")
      ->type_name("FIELD=VALUE")
      ->expected(1)
      ->take_all();
  app->add_option("--name", document.name, "the sweep's name [default: the document's]")
      ->type_name("NAME");
  app->add_flag("--new", submit.new_sweep,
                "make a new sweep even if one has this name [default: continue that one]");
  app->add_option("--priority", submit.priority, "higher first, -1000 to 1000 [default: 0]")
      ->check(CLI::Range(-1000, 1000));
  app->add_flag("--fresh", submit.fresh,
                "train every job again, as a new generation; implies --new");
}

absl::StatusOr<Document> LoadDocument(const DocumentOptions& options) {
  Document document;
  document.file_name = options.file;
  for (const std::string& flag : options.set) {
    PELAB_ASSIGN_OR_RETURN(*document.overrides.Add(), ParseOverride(flag));
  }
  if (!options.name.empty()) {
    if (!experiment::IsSweepName(options.name)) {
      return absl::InvalidArgumentError(Concat("--name must be ", experiment::kSweepNameRule,
                                               ", not \"", Shorten(options.name, 100), "\""));
    }
    v1::Override& name = *document.overrides.Add();
    name.set_field("name");
    name.set_value(options.name);
  }
  PELAB_ASSIGN_OR_RETURN(document.text, ReadFile(options.file, experiment::kMaxDocumentBytes));
  PELAB_ASSIGN_OR_RETURN(document.own_files,
                         ReadOwnFiles(document.text, document.file_name, &document.overrides));
  PELAB_ASSIGN_OR_RETURN(document.sweep,
                         rpc::ParseNewSweepDocument(document.text, document.overrides));
  return document;
}

std::string WentOnText(const v1::SubmitResponse& response, const v1::Sweep& now) {
  std::string text = Concat("going on with sweep ", now.sweep_id(), " ", render::Escape(now.name()),
                            ": ", JobsText(now.jobs()));
  if (response.reopened()) text += "; what had been cancelled is queued again";
  if (now.state() == v1::SWEEP_STATE_FINISHED) text += "; it has finished (--new makes another)";
  if (now.paused()) text += Concat("; it is paused (pelab resume ", now.sweep_id(), ")");
  return text + "\n";
}

v1::SubmitRequest SubmitRequestOf(const Document& document, const std::string& client_token,
                                  const SubmitOptions& options) {
  v1::SubmitRequest request;
  request.set_document(document.text);
  request.set_file_name(document.file_name);
  *request.mutable_overrides() = document.overrides;
  request.set_client_token(client_token);
  request.set_priority(options.priority);
  request.set_fresh(options.fresh);
  request.set_new_sweep(options.new_sweep);
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
