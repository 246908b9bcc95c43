#include "core/access/traceparent.h"

namespace pelab::access {
namespace {

constexpr std::size_t kIdBegin = 3;  // after the version
constexpr std::size_t kIdDigits = 32;
constexpr std::size_t kBytes = 55;  // of version 00

}  // namespace

std::string TraceIdOf(absl::string_view traceparent) {
  if (traceparent.size() < kBytes || traceparent[2] != '-' ||
      traceparent[kIdBegin + kIdDigits] != '-') {
    return "";
  }
  const absl::string_view id = traceparent.substr(kIdBegin, kIdDigits);
  if (id.find_first_not_of("0123456789abcdef") != id.npos || id.find_first_not_of('0') == id.npos) {
    return "";
  }
  return std::string(id);
}

}  // namespace pelab::access
