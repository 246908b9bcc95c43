#include "worker/scale/allocation_spans.h"

#include <utility>

namespace pelab::scale {
namespace {

// Slurm lists an allocation for minutes after its end, and the coordinator may be away meanwhile.
constexpr absl::Duration kKept = absl::Hours(1);

}  // namespace

trace::Span AllocationSpans::Begin(const std::string& queue) const {
  trace::Span span;
  span.context = outer_ ? ChildOf(*outer_) : NewTrace();
  if (outer_) span.parent_span_id = outer_->span_id;
  span.name = "allocation";
  span.start = clock_.Wall();
  span.attributes = {{"pelab.queue", queue}};
  return span;
}

void AllocationSpans::Submitted(trace::Span span, const std::string& id) {
  span.attributes.emplace_back("pelab.allocation", id);
  Note(span.context);
  const absl::Time start = span.start;
  open_[id] = {.span = std::move(span), .mark = start};
}

void AllocationSpans::Refused(trace::Span span, const std::string& why) {
  span.end = clock_.Wall();
  span.error = why.empty() ? "refused" : why;
  Record(std::move(span));
}

void AllocationSpans::See(const Allocations& allocations) {
  for (auto& [id, open] : open_) {
    const auto found = allocations.all().find(id);
    if (found == allocations.all().end() || found->second.phase == open.phase) continue;
    EndPhase(open);
    open.phase = found->second.phase;
    Note(open.span.context);
  }
}

void AllocationSpans::Over(const Ended& ended) {
  const absl::Time now = clock_.Wall();
  std::erase_if(over_, [now](const auto& entry) { return now - entry.second.second > kKept; });
  const auto found = open_.find(ended.id);
  if (found == open_.end()) return;
  EndPhase(found->second);
  trace::Span span = std::move(found->second.span);
  open_.erase(found);
  over_[ended.id] = {span.context, now};
  Note(span.context);
  span.end = now;
  // Empty: Slurm has forgotten it. A worker that ends by itself leaves a completed one.
  if (!ended.state.empty() && ended.state != "COMPLETED") span.error = ended.state;
  Record(std::move(span));
}

std::optional<TraceContext> AllocationSpans::Of(const std::string& id) const {
  if (const auto found = open_.find(id); found != open_.end()) return found->second.span.context;
  if (const auto found = over_.find(id); found != over_.end()) return found->second.first;
  return std::nullopt;
}

void AllocationSpans::EndPhase(Open& open) {
  const absl::Time now = clock_.Wall();
  Record({.context = ChildOf(open.span.context),
          .parent_span_id = open.span.context.span_id,
          .name = NameOf(open.phase),
          .start = std::exchange(open.mark, now),
          .end = now});
}

void AllocationSpans::Note(const TraceContext& span) {
  if (!news_) news_ = span;
}

void AllocationSpans::Record(trace::Span span) {
  if (file_ != nullptr) file_->Add(std::move(span));
}

}  // namespace pelab::scale
