#include "core/base/trace_context.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "core/base/ids.h"

namespace pelab {
namespace {

constexpr std::size_t kTraceDigits = 32;
constexpr std::size_t kSpanDigits = 16;
constexpr std::size_t kLength = 2 + 1 + kTraceDigits + 1 + kSpanDigits + 1 + 2;

bool IsHex(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool IsId(std::string_view text) {
  return IsHex(text) && text.find_first_not_of('0') != std::string_view::npos;
}

}  // namespace

std::string RandomSpanId() { return absl::StrCat(absl::Hex(RandomToken(), absl::kZeroPad16)); }

std::optional<TraceContext> ParseTraceparent(std::string_view text) {
  if (text.size() < kLength || text[2] != '-' || text[35] != '-' || text[52] != '-') return {};
  const std::string_view version = text.substr(0, 2);
  const bool whole =
      version == "00" ? text.size() == kLength : text.size() == kLength || text[kLength] == '-';
  if (!IsHex(version) || version == "ff" || !whole) return {};
  const std::string_view trace = text.substr(3, kTraceDigits);
  const std::string_view span = text.substr(36, kSpanDigits);
  if (!IsId(trace) || !IsId(span) || !IsHex(text.substr(53, 2))) return {};
  return TraceContext{std::string(trace), std::string(span)};
}

std::string Traceparent(const TraceContext& context) {
  return absl::StrCat("00-", context.trace_id, "-", context.span_id, "-01");
}

TraceContext NewTrace() { return {absl::StrCat(RandomSpanId(), RandomSpanId()), RandomSpanId()}; }

TraceContext ChildOf(const TraceContext& parent) { return {parent.trace_id, RandomSpanId()}; }

}  // namespace pelab
