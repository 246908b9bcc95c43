#include "core/trace/span.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "core/base/build_info.h"

namespace pelab::trace {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kStatusError = 2;

// Integers of 64 bits are texts in OTLP's JSON.
Json ValueOf(const std::variant<std::string, std::int64_t, double>& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return {{"stringValue", *text}};
  if (const auto* number = std::get_if<std::int64_t>(&value)) {
    return {{"intValue", absl::StrCat(*number)}};
  }
  return {{"doubleValue", std::get<double>(value)}};
}

Json ToJson(const Attributes& attributes) {
  Json list = Json::array();
  for (const auto& [key, value] : attributes) {
    list.push_back({{"key", key}, {"value", ValueOf(value)}});
  }
  return list;
}

Json ToJson(const Span& span) {
  Json json = {{"traceId", span.context.trace_id}, {"spanId", span.context.span_id}};
  if (!span.parent_span_id.empty()) json["parentSpanId"] = span.parent_span_id;
  json["name"] = span.name;
  json["kind"] = static_cast<int>(span.kind);
  json["startTimeUnixNano"] = absl::StrCat(absl::ToUnixNanos(span.start));
  json["endTimeUnixNano"] = absl::StrCat(absl::ToUnixNanos(std::max(span.start, span.end)));
  json["attributes"] = ToJson(span.attributes);
  json["status"] = Json::object();
  if (!span.error.empty()) json["status"] = {{"code", kStatusError}, {"message", span.error}};
  return json;
}

}  // namespace

std::string ToOtlpLine(const Span& span, const Attributes& resource) {
  const Json scope = {{"name", "pelab"}, {"version", VersionText()}};
  const Json scope_spans = {{"scope", scope}, {"spans", Json::array({ToJson(span)})}};
  const Json line = {
      {"resourceSpans", Json::array({{{"resource", {{"attributes", ToJson(resource)}}},
                                      {"scopeSpans", Json::array({scope_spans})}}})}};
  return line.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace pelab::trace
