#include "server/background.h"

#include <algorithm>
#include <utility>

#include "core/base/status.h"

namespace pelab {

absl::StatusOr<std::unique_ptr<Background>> Background::Open(const CoordinatorOptions& options) {
  std::unique_ptr<Background> background(new Background());
  if (options.backups) {
    PELAB_ASSIGN_OR_RETURN(
        background->backups_,
        backups::ScheduledBackups::Open(*options.backups, options.database, *options.clock));
  }
  if (options.notify) {
    PELAB_ASSIGN_OR_RETURN(
        background->notifier_,
        notify::Notifier::Make(*options.notify, options.database, *options.clock));
  }
  if (!options.trace_file.empty()) {
    PELAB_ASSIGN_OR_RETURN(background->spans_,
                           trace::SpanFile::Open(options.trace_file, "pelab-server", ""));
  }
  return background;
}

absl::Status Background::StartNotifier() {
  return notifier_ ? notifier_->Start() : absl::OkStatus();
}

void Background::StartBackups(store::ArtifactFiles& artifacts) {
  if (backups_) backups_->Start([&artifacts] { return artifacts.HoldAll(); });
}

void Background::BeginStop() {
  if (backups_) backups_->BeginStop();
  if (notifier_) notifier_->BeginStop();
}

void Background::Stop() {
  if (backups_) backups_->Stop();
  if (notifier_) notifier_->Stop();
}

void Background::SweepsEnded(const std::vector<std::int64_t>& sweep_ids) {
  if (notifier_) notifier_->SweepsEnded(sweep_ids);
}

void Background::Committed(const absl::StatusOr<std::vector<store::ApplyResult>>& results) {
  if (notifier_) notifier_->Committed(results);
}

void Background::Quarantined(const std::string& worker_id, const std::string& name,
                             absl::Duration length) {
  if (!notifier_) return;
  notifier_->Quarantined({.worker = name, .worker_id = worker_id, .length = length});
}

void Background::BudgetSpent(const notify::SpentBudget& budget) {
  if (notifier_) notifier_->BudgetSpent(budget);
}

void Background::GpuSecondsSpent(const sched::Account& account) {
  if (!notifier_) return;
  notifier_->GpuSecondsSpent({.principal = account.name(),
                              .used = account.GpuSecondsUsed(),
                              .budget = account.gpu_seconds()});
}

void Background::AttemptEnded(const sched::EndedAttempt& ended, absl::Time now) {
  const store::Assignment& assignment = ended.assignment;
  if (!spans_ || assignment.trace.span_id.empty()) return;
  const std::string outcome{state::Name(ended.outcome)};
  trace::Span span{.context = assignment.trace,
                   .parent_span_id = assignment.parent_span,
                   .name = "attempt",
                   .start = absl::FromUnixMillis(assignment.started_at),
                   .end = now,
                   .attributes = {{"pelab.sweep_id", ended.sweep_id},
                                  {"pelab.job_id", assignment.job_id},
                                  {"pelab.attempt_id", assignment.attempt_id},
                                  {"pelab.pe", assignment.pe_label},
                                  {"pelab.task", assignment.task},
                                  {"pelab.seed", assignment.seed},
                                  {"pelab.worker_id", ended.worker_id},
                                  {"pelab.worker", ended.worker},
                                  {"pelab.outcome", outcome},
                                  {"pelab.waited_seconds", absl::ToDoubleSeconds(ended.waited)}}};
  if (ended.outcome != state::Outcome::kSucceeded) {
    span.error =
        ended.error == state::ErrorKind::kNone ? outcome : std::string{state::Name(ended.error)};
  }
  spans_->Add(std::move(span));
}

std::optional<std::uint64_t> Background::SpansDropped() const {
  return spans_ ? std::optional<std::uint64_t>(spans_->dropped()) : std::nullopt;
}

std::optional<absl::Time> Background::LastBackup(std::optional<absl::Time> other) const {
  if (!backups_) return other;
  // Without a value nobody would notice that the first backups fail.
  return std::max(other, backups_->last_success()).value_or(absl::UnixEpoch());
}

std::optional<metrics::NotificationFigures> Background::Notifications() const {
  if (!notifier_) return std::nullopt;
  const notify::Notifier::Figures figures = notifier_->figures();
  return metrics::NotificationFigures{
      .delivered = figures.delivered, .failed = figures.failed, .dropped = figures.dropped};
}

}  // namespace pelab
