// Strict parsing of a request's parameters: an unknown or repeated parameter is an error. Otherwise
// a typing mistake would silently return everything.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace pelab::http {

// A decoded request. A value.
struct Request {
  std::vector<std::string> path;  // "/api/v1/sweeps/3" -> {"api", "v1", "sweeps", "3"}
  std::multimap<std::string, std::string> parameters;
};

// "/a/b%20c" -> {"a", "b c"}: `path` is decoded already. Empty segments are dropped.
std::vector<std::string> SplitPath(std::string_view path);

// The parameters of one request. All errors are INVALID_ARGUMENT and name the parameter.
class Query {
 public:
  // `known` lists the parameters that this path accepts.
  static absl::StatusOr<Query> Read(const Request& request, const std::set<std::string>& known);

  bool has(const std::string& name) const { return values_.count(name) != 0; }
  // Empty if the parameter is missing.
  std::string Text(const std::string& name) const;
  // The comma-separated parts of the parameter. An empty part is an error.
  absl::StatusOr<std::vector<std::string>> List(const std::string& name) const;
  absl::StatusOr<std::int64_t> Number(const std::string& name, std::int64_t otherwise,
                                      std::int64_t least, std::int64_t most) const;
  // One of `allowed`; the first one if the parameter is missing.
  absl::StatusOr<std::string> OneOf(const std::string& name,
                                    const std::vector<std::string>& allowed) const;

 private:
  std::map<std::string, std::string> values_;
};

}  // namespace pelab::http
