// The values of a job in the form in which constraints read them. Private to core/catalog.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/catalog/catalog.h"

namespace pelab::catalog {

// A job's values by field; 0, false, "" or an empty list for a field that the job lacks.
class JobView {
 public:
  explicit JobView(const Values& values) : values_(values) {}

  bool Has(std::string_view field) const { return values_.find(field) != values_.end(); }
  std::int64_t Int(std::string_view field) const { return Get<std::int64_t>(field); }
  // For divisors: at least 1, even if the field is missing or out of range.
  std::int64_t Positive(std::string_view field) const {
    return std::max<std::int64_t>(1, Int(field));
  }
  double Real(std::string_view field) const { return Get<double>(field); }
  bool Bool(std::string_view field) const { return Get<bool>(field); }
  bool Is(std::string_view field, std::string_view choice) const {
    return Get<std::string>(field) == choice;
  }
  std::vector<std::int64_t> Ints(std::string_view field) const {
    return Get<std::vector<std::int64_t>>(field);
  }
  // Whether a set of choices has this member.
  bool Lists(std::string_view field, std::string_view choice) const {
    const auto members = Get<std::vector<std::string>>(field);
    return std::find(members.begin(), members.end(), choice) != members.end();
  }
  std::string pe() const { return Get<std::string>("pe"); }
  // "task.length (128)"
  std::string Named(std::string_view field) const {
    return std::string(field) + " (" + std::to_string(Int(field)) + ")";
  }

 private:
  template <typename T>
  T Get(std::string_view field) const {
    const auto found = values_.find(field);
    if (found == values_.end()) return T();
    const auto* value = std::get_if<T>(&found->second);
    return value == nullptr ? T() : *value;
  }

  const Values& values_;
};

// Describes what `field` must be if it exceeds `bound`; "" if it does not, or if one of the two is
// missing.
inline std::string AtMost(const JobView& job, std::string_view field, std::string_view bound) {
  if (!job.Has(field) || !job.Has(bound) || job.Int(field) <= job.Int(bound)) return "";
  return "at most " + job.Named(bound);
}

}  // namespace pelab::catalog
