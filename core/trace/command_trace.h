// The trace of one command of `pelab`.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "core/base/trace_context.h"
#include "core/trace/span_file.h"

namespace pelab::trace {

// The span that the environment variable TRACEPARENT names. nullopt: it names none.
std::optional<TraceContext> OuterSpan();

// The span of the command, from construction to Finish. It is a child of the span that the
// environment variable TRACEPARENT names, or else the first span of a new trace. The calls that
// this process makes meanwhile belong to it (core/rpc/send_trace.h). At most one CommandTrace
// exists at a time. Thread-safe, apart from construction, Finish and destruction.
class CommandTrace {
 public:
  // The one that exists, or null.
  static CommandTrace* Current();

  CommandTrace();
  ~CommandTrace();
  CommandTrace(const CommandTrace&) = delete;
  CommandTrace& operator=(const CommandTrace&) = delete;

  // Also records spans, in this file. Call it before others record. The errors are
  // SpanFile::Open's.
  absl::Status RecordTo(const std::string& path, const std::string& program);
  // Ends the span, which has this name ("pelab submit"); `error`: why it failed, empty if it did
  // not. Returns how many spans could not be written.
  std::uint64_t Finish(std::string name, std::string error);

  const TraceContext& context() const { return span_.context; }
  const std::string& file() const { return path_; }  // empty: nothing is recorded
  void Record(Span span);

 private:
  Span span_;
  std::string path_;
  std::unique_ptr<SpanFile> file_;  // null: nothing is recorded
};

}  // namespace pelab::trace
