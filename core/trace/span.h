// A span: one timed operation of a program, as part of a trace.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "core/base/trace_context.h"

namespace pelab::trace {

using Attribute = std::pair<std::string, std::variant<std::string, std::int64_t, double>>;
using Attributes = std::vector<Attribute>;

// The numbers are OTLP's.
enum class Kind { kInternal = 1, kServer = 2, kClient = 3 };

struct Span {
  TraceContext context;
  std::string parent_span_id;  // 16 digits; empty: the first span of its trace
  std::string name;            // one of few: "attempt", "Sweeps/Submit"
  Kind kind = Kind::kInternal;
  absl::Time start;
  absl::Time end;
  Attributes attributes;
  std::string error;  // why it did not succeed; empty: it did
};

// The span as one line without a newline, in the OTLP JSON encoding that the file receiver of an
// OpenTelemetry collector reads: one `resourceSpans` with this span alone. `resource` says which
// program it is. Bytes that are not UTF-8 are replaced. Pure.
// https://opentelemetry.io/docs/specs/otel/protocol/file-exporter
std::string ToOtlpLine(const Span& span, const Attributes& resource);

}  // namespace pelab::trace
