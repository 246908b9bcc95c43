#include "worker/agent/attempt_spans.h"

#include <utility>

#include "core/event/enums.h"

namespace pelab::agent {
namespace {

std::optional<TraceContext> SpanOf(const v1::Assignment& assignment) {
  return ParseTraceparent(assignment.traceparent());
}

}  // namespace

LogIds IdsOf(const v1::Assignment& assignment) {
  const TraceContext span = SpanOf(assignment).value_or(TraceContext());
  return {.trace_id = span.trace_id,
          .span_id = span.span_id,
          .principal = assignment.principal(),
          .sweep_id = assignment.sweep_id(),
          .job_id = assignment.job_id(),
          .attempt_id = assignment.attempt_id()};
}

AttemptSpans::AttemptSpans(const v1::Assignment& assignment, const Clock& clock,
                           trace::SpanFile* file)
    : clock_(clock), file_(file), mark_(clock.Wall()) {
  const std::optional<TraceContext> above = SpanOf(assignment);
  if (!above) return;
  attempt_ = trace::Span{.context = ChildOf(*above),
                         .parent_span_id = above->span_id,
                         .name = "attempt on worker",
                         .start = mark_,
                         .attributes = {{"pelab.job_id", assignment.job_id()},
                                        {"pelab.attempt_id", assignment.attempt_id()},
                                        {"pelab.label", assignment.label()},
                                        {"pelab.slot", std::int64_t{assignment.slot()}}}};
}

std::string AttemptSpans::traceparent() const {
  return attempt_ ? Traceparent(attempt_->context) : "";
}

void AttemptSpans::Said(const v1::Event& event) {
  if (event.has_started()) Record("start trainer", {});
  if (event.has_epoch()) {
    ++epochs_;
    last_epoch_ = clock_.Wall();
  }
  if (event.has_head_ablation()) {
    Record("analysis", {{"pelab.analysis", "head_ablation"}});
  }
  if (event.has_analysis()) {
    Record("analysis", {{"pelab.analysis", event.analysis().name()}});
  }
}

void AttemptSpans::Ended(const v1::Finished& finished) {
  if (!attempt_) return;
  EndTraining();
  attempt_->end = clock_.Wall();
  if (finished.outcome() != v1::ATTEMPT_OUTCOME_SUCCEEDED) {
    const auto outcome = event::OutcomeOf(finished.outcome());
    attempt_->error = !finished.error().empty() ? finished.error()
                      : outcome                 ? std::string{state::Name(*outcome)}
                                                : "unknown";
  }
  if (file_ != nullptr) file_->Add(*std::move(attempt_));
  attempt_.reset();
}

void AttemptSpans::EndTraining() {
  const int epochs = std::exchange(epochs_, 0);
  if (epochs > 0) Add("train", last_epoch_, {{"pelab.epochs", std::int64_t{epochs}}});
}

void AttemptSpans::Record(const std::string& name, trace::Attributes attributes) {
  EndTraining();
  Add(name, clock_.Wall(), std::move(attributes));
}

void AttemptSpans::Add(const std::string& name, absl::Time end, trace::Attributes attributes) {
  const absl::Time begin = std::exchange(mark_, end);
  if (!attempt_ || file_ == nullptr) return;
  file_->Add({.context = ChildOf(attempt_->context),
              .parent_span_id = attempt_->context.span_id,
              .name = name,
              .start = begin,
              .end = end,
              .attributes = std::move(attributes)});
}

}  // namespace pelab::agent
