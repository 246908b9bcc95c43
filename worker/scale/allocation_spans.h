// The trace of each allocation.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/trace_context.h"
#include "core/trace/span_file.h"
#include "worker/scale/allocations.h"

namespace pelab::scale {

// A span "allocation" from an allocation's submission to its end, and below it one for each of its
// phases: "waiting", "starting", "running", "ending". It is below `outer`, or the first span of a
// new trace. Allocations that this program did not submit have none. Without a file nothing is
// recorded, and the traces are passed on all the same. Not thread-safe. `clock` and `file` must
// outlive the object.
class AllocationSpans {
 public:
  explicit AllocationSpans(const Clock& clock, trace::SpanFile* file = nullptr,
                           std::optional<TraceContext> outer = std::nullopt)
      : clock_(clock), file_(file), outer_(std::move(outer)) {}

  // The span of an allocation that is submitted now; Submitted or Refused follows.
  trace::Span Begin(const std::string& queue) const;
  void Submitted(trace::Span span, const std::string& id);
  void Refused(trace::Span span, const std::string& why);

  // Takes what a look at the batch system has found.
  void See(const Allocations& allocations);
  void Over(const Ended& ended);

  // The span of the allocation; for an hour after its end, too. nullopt: it has none.
  std::optional<TraceContext> Of(const std::string& id) const;
  // The first allocation that has been submitted, is in another phase or is over since News was
  // forgotten. nullopt: none.
  const std::optional<TraceContext>& news() const { return news_; }
  void ForgetNews() { news_.reset(); }

 private:
  struct Open {
    trace::Span span;
    Phase phase = Phase::kWaiting;
    absl::Time mark;  // when the phase began
  };

  void EndPhase(Open& open);
  void Note(const TraceContext& span);
  void Record(trace::Span span);

  const Clock& clock_;
  trace::SpanFile* const file_;  // null: nothing is recorded
  const std::optional<TraceContext> outer_;
  std::map<std::string, Open> open_;  // by the id of the allocation
  // Those that are over, with the time of their end.
  std::map<std::string, std::pair<TraceContext, absl::Time>> over_;
  std::optional<TraceContext> news_;
};

}  // namespace pelab::scale
