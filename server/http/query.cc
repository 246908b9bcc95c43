#include "server/http/query.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "core/base/strings.h"

namespace pelab::http {

std::vector<std::string> SplitPath(std::string_view path) {
  std::vector<std::string> segments;
  while (!path.empty()) {
    const std::size_t slash = std::min(path.find('/'), path.size());
    if (slash > 0) segments.emplace_back(path.substr(0, slash));
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  return segments;
}

absl::StatusOr<Query> Query::Read(const Request& request, const std::set<std::string>& known) {
  Query query;
  for (const auto& [name, value] : request.parameters) {
    if (known.count(name) == 0) {
      return absl::InvalidArgumentError(
          known.empty() ? Concat("unknown parameter \"", name, "\"; this address takes none")
                        : Concat("unknown parameter \"", name, "\"; known: ", Join(known, ", ")));
    }
    if (!query.values_.emplace(name, value).second) {
      return absl::InvalidArgumentError(Concat("parameter \"", name, "\" is given twice"));
    }
  }
  return query;
}

std::string Query::Text(const std::string& name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? std::string() : found->second;
}

absl::StatusOr<std::vector<std::string>> Query::List(const std::string& name) const {
  const std::string text = Text(name);
  if (text.empty()) return std::vector<std::string>();
  std::vector<std::string> parts = absl::StrSplit(text, ',');
  if (std::find(parts.begin(), parts.end(), "") != parts.end()) {
    return absl::InvalidArgumentError(
        Concat(name, "=\"", text, "\" has an empty part; allowed: texts apart by commas"));
  }
  return parts;
}

absl::StatusOr<std::int64_t> Query::Number(const std::string& name, std::int64_t otherwise,
                                           std::int64_t least, std::int64_t most) const {
  if (!has(name)) return otherwise;
  std::int64_t number = 0;
  if (absl::SimpleAtoi(Text(name), &number) && number >= least && number <= most) return number;
  return absl::InvalidArgumentError(
      Concat(name, "=\"", Text(name), "\" is not a whole number from ", least, " to ", most));
}

absl::StatusOr<std::string> Query::OneOf(const std::string& name,
                                         const std::vector<std::string>& allowed) const {
  if (!has(name)) return allowed.front();
  const std::string text = Text(name);
  if (std::find(allowed.begin(), allowed.end(), text) != allowed.end()) return text;
  return absl::InvalidArgumentError(
      Concat(name, "=\"", text, "\" is not allowed; allowed: ", Join(allowed, ", ")));
}

}  // namespace pelab::http
