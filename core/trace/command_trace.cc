#include "core/trace/command_trace.h"

#include <atomic>
#include <cstdlib>
#include <optional>
#include <utility>

#include "absl/time/clock.h"
#include "core/base/status.h"

namespace pelab::trace {
namespace {

std::atomic<CommandTrace*> current = nullptr;

Span Begin() {
  const std::optional<TraceContext> outer = OuterSpan();
  Span span;
  span.context = outer ? ChildOf(*outer) : NewTrace();
  if (outer) span.parent_span_id = outer->span_id;
  span.start = absl::Now();
  return span;
}

}  // namespace

std::optional<TraceContext> OuterSpan() {
  const char* named = std::getenv(kTraceparentVariable);
  return ParseTraceparent(named == nullptr ? "" : named);
}

CommandTrace* CommandTrace::Current() { return current; }

CommandTrace::CommandTrace() : span_(Begin()) { current = this; }

CommandTrace::~CommandTrace() { current = nullptr; }

absl::Status CommandTrace::RecordTo(const std::string& path, const std::string& program) {
  PELAB_ASSIGN_OR_RETURN(file_, SpanFile::Open(path, program, ""));
  path_ = path;
  return absl::OkStatus();
}

std::uint64_t CommandTrace::Finish(std::string name, std::string error) {
  if (!file_) return 0;
  span_.name = std::move(name);
  span_.error = std::move(error);
  span_.end = absl::Now();
  file_->Add(span_);
  return file_->Finish();
}

void CommandTrace::Record(Span span) {
  if (file_) file_->Add(std::move(span));
}

}  // namespace pelab::trace
