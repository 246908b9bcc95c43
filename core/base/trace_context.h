// A position in a distributed trace: the ids of a trace and of one of its spans (W3C Trace Context,
// https://www.w3.org/TR/trace-context). Values without shared state: thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace pelab {

// The environment variable and the metadata key by which programs pass a trace on.
inline constexpr char kTraceparentVariable[] = "TRACEPARENT";
inline constexpr char kTraceparentKey[] = "traceparent";

// One span of one trace.
struct TraceContext {
  std::string trace_id;  // 32 lower-case hexadecimal digits, not all 0
  std::string span_id;   // 16 of them
  bool operator==(const TraceContext&) const = default;
};

// Reads "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" (section 3.2). A later version
// may have more after another "-". nullopt if the text is not such a value. The flags are not kept:
// pelab records every span if it records at all.
std::optional<TraceContext> ParseTraceparent(std::string_view text);
std::string Traceparent(const TraceContext& context);

std::string RandomSpanId();
// A random new trace, or a random new span of the same trace.
TraceContext NewTrace();
TraceContext ChildOf(const TraceContext& parent);

}  // namespace pelab
