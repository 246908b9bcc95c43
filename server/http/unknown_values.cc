#include "server/http/unknown_values.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/db/read/where.h"
#include "core/results/fields.h"
#include "core/results/unknown_value.h"
#include "server/http/lists.h"

namespace pelab::http {
namespace {

// Each value takes a query and a pass over the jobs.
constexpr std::size_t kMostValues = 4;

absl::StatusOr<bool> AnyHas(db::Reader& reader, const v1::JobFilter& sweep,
                            const db::WantedValue& wanted) {
  v1::ListJobsRequest request;
  *request.mutable_filter() = sweep;
  request.mutable_filter()->set_where(db::WhereOne(wanted));
  request.set_specs_apart(true);
  request.mutable_page()->set_limit(1);
  PELAB_ASSIGN_OR_RETURN(const v1::ListJobsResponse page, reader.ListJobs(request));
  return page.jobs_size() > 0;
}

}  // namespace

absl::Status NoteUnknownValues(db::Reader& reader, const v1::JobFilter& filter, std::size_t jobs,
                               render::Json& answer) {
  if (jobs > 0) return absl::OkStatus();
  PELAB_ASSIGN_OR_RETURN(auto wanted, db::ValuesOfWhere(filter.where()));
  if (wanted.empty()) return absl::OkStatus();
  wanted.resize(std::min(wanted.size(), kMostValues));
  v1::JobFilter sweep;
  sweep.set_sweep(filter.sweep());
  const auto all = AllJobs(reader, sweep);
  if (absl::IsInvalidArgument(all.status())) return absl::OkStatus();  // more than kMostJobs
  if (!all.ok()) return all.status();
  const results::FieldTable fields(*all);
  std::vector<std::string> sentences;
  for (const db::WantedValue& one : wanted) {
    PELAB_ASSIGN_OR_RETURN(const bool any, AnyHas(reader, sweep, one));
    if (any) continue;
    std::string sentence = results::UnknownValueSentence(
        *all, fields, {one.field, one.value, one.op}, " of the sweep");
    if (!sentence.empty()) sentences.push_back(std::move(sentence));
  }
  if (!sentences.empty()) answer["note"] = Join(sentences, "; ");
  return absl::OkStatus();
}

}  // namespace pelab::http
