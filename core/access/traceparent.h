// The trace to which a call belongs, by W3C Trace Context's header `traceparent`.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace pelab::access {

// The 32 hexadecimal digits of the trace id in "00-4bf92f3577b34da6a3ce929d0e0e4736-…"; empty if
// the header is malformed or has the id 0.
std::string TraceIdOf(absl::string_view traceparent);

}  // namespace pelab::access
