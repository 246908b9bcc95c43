#include "client/terminal/unknown_values.h"

#include <algorithm>
#include <limits>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "core/base/short_hashes.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/base/utf8.h"
#include "core/catalog/catalog.h"
#include "core/db/read/where.h"
#include "core/render/text.h"
#include "core/results/fields.h"
#include "core/results/rows.h"

namespace pelab::client {
namespace {

constexpr std::size_t kListed = 8;
constexpr std::size_t kShown = 100;  // bytes of a value

// The field's values in the jobs: numbers by size, then texts.
std::vector<std::string> ValuesThere(const results::JobList& jobs,
                                     const results::FieldTable& fields, const std::string& field) {
  std::set<std::pair<double, std::string>> values;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const render::Json row = results::ToJson(jobs.rows()[i], "");
    const auto column = row.find(field);
    const std::string value = column == row.end()   ? fields.StoredValue(i, field)
                              : column->is_null()   ? "-"
                              : column->is_string() ? column->get<std::string>()
                                                    : column->dump();
    if (value == "-") continue;
    double number = 0;
    const bool is_number = absl::SimpleAtod(value, &number);
    values.emplace(is_number ? number : std::numeric_limits<double>::infinity(), value);
  }
  std::vector<std::string> sorted;
  sorted.reserve(values.size());
  for (const auto& [number, value] : values) sorted.push_back(value);
  return sorted;
}

std::string ListOf(const std::vector<std::string>& values) {
  ShortHashes hashes;
  for (const std::string& value : values) hashes.Add(value);
  std::vector<std::string> shown;
  for (std::size_t i = 0; i < std::min(values.size(), kListed); ++i) {
    shown.push_back(Shorten(hashes.In(values[i]), kShown));
  }
  const std::size_t more = values.size() - shown.size();
  return Concat(Join(shown, ", "), more == 0 ? "" : Concat(" and ", more, " more"));
}

absl::StatusOr<bool> AnyHas(DataSource& source, v1::JobFilter filter,
                            const db::WantedValue& wanted) {
  filter.set_where(db::WhereEqual(wanted));
  bool any = false;
  const absl::Status status = source.ReadJobs(filter, [&](v1::ListJobsResponse& page) {
    any = any || page.jobs_size() > 0;
    return any ? absl::CancelledError("one is enough") : absl::OkStatus();
  });
  if (!status.ok() && !any) return status;
  return any;
}

// The field that has what was asked of this one, as the tables show it.
std::string OtherField(const db::WantedValue& wanted) {
  if (wanted.field == "state" && wanted.value == "diverged") {
    return "; jobs that are shown as diverged meet diverged=true";
  }
  if (wanted.field == "pe" && absl::StrContains(wanted.value, ':')) {
    return Concat("; labels of own encodings are in pe_label, their names in pe.encoding");
  }
  return "";
}

std::string SentenceOf(const db::WantedValue& wanted, const std::vector<std::string>& there,
                       bool of_sweep) {
  double number = 0;
  std::vector<std::string_view> known;  // one number is not a slip for another
  if (!absl::SimpleAtod(wanted.value, &number)) known.assign(there.begin(), there.end());
  const std::string near(catalog::DidYouMean(wanted.value, known));
  const std::string hint = near.empty() ? "; " : Concat("; did you mean ", near, "? ");
  return Concat("no job ", of_sweep ? "of the sweep " : "", "has ", wanted.field, " = ",
                Shorten(wanted.value, kShown), hint, "there: ", ListOf(there), OtherField(wanted));
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
  for (const db::WantedValue& one : wanted) {
    const std::vector<std::string> there = ValuesThere(jobs, fields, one.field);
    if (there.empty()) continue;
    PELAB_ASSIGN_OR_RETURN(const bool any, AnyHas(source, rest, one));
    if (!any) sentences.push_back(SentenceOf(one, there, !filter.sweep().empty()));
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
