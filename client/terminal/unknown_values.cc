#include "client/terminal/unknown_values.h"

#include <utility>

#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/db/read/where.h"
#include "core/render/text.h"
#include "core/results/fields.h"
#include "core/results/unknown_value.h"

namespace pelab::client {
namespace {

absl::StatusOr<bool> AnyHas(DataSource& source, v1::JobFilter filter,
                            const db::WantedValue& wanted) {
  filter.set_where(db::WhereOne(wanted));
  bool any = false;
  const absl::Status status = source.ReadJobs(filter, [&](v1::ListJobsResponse& page) {
    any = any || page.jobs_size() > 0;
    return any ? absl::CancelledError("one is enough") : absl::OkStatus();
  });
  if (!status.ok() && !any) return status;
  return any;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> UnknownValues(DataSource& source,
                                                       const v1::JobFilter& filter) {
  std::vector<std::string> sentences;
  PELAB_ASSIGN_OR_RETURN(const auto wanted, db::ValuesOfWhere(filter.where()));
  if (wanted.empty()) return sentences;
  v1::JobFilter rest = filter;
  rest.clear_where();
  rest.clear_states();
  PELAB_ASSIGN_OR_RETURN(const results::JobList jobs, source.Jobs(rest));
  const results::FieldTable fields(jobs);
  const std::string whose = filter.sweep().empty() ? "" : " of the sweep";
  for (const db::WantedValue& one : wanted) {
    std::string sentence =
        results::UnknownValueSentence(jobs, fields, {one.field, one.value, one.op}, whose);
    if (sentence.empty()) continue;
    PELAB_ASSIGN_OR_RETURN(const bool any, AnyHas(source, rest, one));
    if (!any) sentences.push_back(std::move(sentence));
  }
  return sentences;
}

absl::Status NoJobMeets(DataSource& source, const v1::JobFilter& filter, const std::string& what) {
  PELAB_ASSIGN_OR_RETURN(const auto sentences, UnknownValues(source, filter));
  std::string text = Concat("--where: ", what, " meets \"", filter.where(), "\"");
  for (const std::string& sentence : sentences) text += Concat("; ", sentence);
  return absl::NotFoundError(text);
}

absl::Status NoteUnknownValues(const Context& context, DataSource& source,
                               const v1::JobFilter& filter, std::size_t jobs, const char* flag) {
  if (jobs > 0 || filter.where().empty()) return absl::OkStatus();
  PELAB_ASSIGN_OR_RETURN(const auto sentences, UnknownValues(source, filter));
  for (const std::string& sentence : sentences) {
    context.err(Concat("note: ", flag, ": ", render::Escape(sentence), "\n"));
  }
  return absl::OkStatus();
}

}  // namespace pelab::client
