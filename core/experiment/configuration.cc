#include "core/experiment/configuration.h"

namespace pelab::experiment {
namespace {

// The end of the name of a member that holds a seed. This text occurs nowhere else, since a
// quotation mark within a string is escaped. The character before this text is `"` or `_`.
constexpr std::string_view kNameEnd = "seed\":";

// Whether the number at `at` is exactly `seed`.
bool HasSeedAt(std::string_view json, std::size_t at, std::string_view seed) {
  const std::size_t end = at + seed.size();
  return end < json.size() && json.substr(at, seed.size()) == seed &&
         (json[end] == ',' || json[end] == '}');
}

}  // namespace

std::string TemplateOf(std::string_view canonical_json, std::int64_t seed) {
  const std::string digits = std::to_string(seed);
  std::string out;
  out.reserve(canonical_json.size());
  std::size_t copied = 0;
  for (std::size_t found = canonical_json.find(kNameEnd, 1); found != std::string_view::npos;
       found = canonical_json.find(kNameEnd, found + 1)) {
    const char before = canonical_json[found - 1];
    const std::size_t value = found + kNameEnd.size();
    if ((before != '"' && before != '_') || !HasSeedAt(canonical_json, value, digits)) continue;
    out.append(canonical_json.substr(copied, value - copied)).push_back(kSeedMark);
    copied = value + digits.size();
  }
  return out.append(canonical_json.substr(copied));
}

std::string FillTemplate(std::string_view spec_template, std::int64_t seed) {
  const std::string digits = std::to_string(seed);
  std::string out;
  out.reserve(spec_template.size() + 2 * digits.size());
  for (const char c : spec_template) {
    if (c == kSeedMark) {
      out += digits;
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace pelab::experiment
