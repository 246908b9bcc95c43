#include "core/results/unknown_value.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "core/base/short_hashes.h"
#include "core/base/strings.h"
#include "core/base/utf8.h"
#include "core/catalog/catalog.h"
#include "core/results/rows.h"

namespace pelab::results {
namespace {

constexpr std::size_t kMostListed = 8;
constexpr std::size_t kMostValueBytes = 100;

// The field's values in the jobs: numbers by size, then texts.
std::vector<std::string> ValuesThere(const JobList& jobs, const FieldTable& table,
                                     const std::string& field) {
  std::set<std::pair<double, std::string>> values;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const render::Json row = ToJson(jobs.rows()[i], "");
    const auto column = row.find(field);
    const std::string value = column == row.end()   ? table.StoredValue(i, field)
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
  for (std::size_t i = 0; i < std::min(values.size(), kMostListed); ++i) {
    shown.push_back(Shorten(hashes.In(values[i]), kMostValueBytes));
  }
  const std::size_t more = values.size() - shown.size();
  return Concat(Join(shown, ", "), more == 0 ? "" : Concat(" and ", more, " more"));
}

// The field that has what was asked of this one, as the tables show it.
std::string OtherField(const AskedValue& asked) {
  if (asked.field == "state" && asked.value == "diverged") {
    return "; jobs that are shown as diverged meet diverged=true";
  }
  if (asked.field == "pe" && absl::StrContains(asked.value, ':')) {
    return "; labels of own encodings are in pe_label, their names in pe.encoding";
  }
  return "";
}

}  // namespace

std::string UnknownValueSentence(const JobList& jobs, const FieldTable& table,
                                 const AskedValue& asked, const std::string& whose) {
  const std::vector<std::string> there = ValuesThere(jobs, table, asked.field);
  if (there.empty()) return "";
  double number = 0;
  std::vector<std::string_view> known;  // one number is not a slip for another
  if (asked.op == "=" && !absl::SimpleAtod(asked.value, &number))
    known.assign(there.begin(), there.end());
  const std::string near(catalog::DidYouMean(asked.value, known));
  const std::string hint = near.empty() ? "; " : Concat("; did you mean ", near, "? ");
  const std::string value = Shorten(asked.value, kMostValueBytes);
  const bool is_ordered = asked.op != "=" && there.size() > 1;
  const std::string values =
      is_ordered ? Concat(there.front(), " to ", there.back()) : ListOf(there);
  return Concat("no job", whose, " has ", asked.field, " ", asked.op, " ", value, hint,
                "there: ", values, OtherField(asked));
}

}  // namespace pelab::results
