#include "client/claims/settler.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "client/claims/judged_sheet.h"
#include "client/claims/standing.h"
#include "client/limits.h"
#include "client/terminal/claim_tables.h"
#include "client/terminal/put.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/render/text.h"

namespace pelab::client {
namespace {

std::string SeedsText(std::int64_t first, std::int64_t end) {
  return end - first == 1 ? Concat("seed ", first) : Concat("seeds ", first, "..", end - 1);
}

}  // namespace

std::string RoundText(const v1::PlannedRound& round) {
  std::string text =
      Concat("round ", round.round(), ": ", SeedsText(round.first_seed(), round.end_seed()), ", ",
             render::Counted(round.jobs(), "job"));
  if (round.stored() > 0) text += Concat(", ", round.stored(), " of them stored already");
  if (round.expected_seconds() > 0) {
    text += Concat(", about ", render::FormatSeconds(round.expected_seconds()), " of slot time");
  }
  return text;
}

Settler::Settler(const Context& context, const SheetFile& file, const SettleOptions& options,
                 SettleHost host)
    : context_(context), file_(file), options_(options), host_(std::move(host)) {}

void Settler::Say(const std::string& line) const { context_.err(Concat(line, "\n")); }

absl::StatusOr<int> Settler::Run(Coordinator& coordinator) {
  PELAB_ASSIGN_OR_RETURN(v1::Settlement state, Register(coordinator));
  if (!options_.put_aside.empty()) {
    PELAB_ASSIGN_OR_RETURN(state, PutAside(coordinator, state));
  }
  if (!std::exchange(announced_, true)) Announce(state);
  slots_ = std::max<std::int64_t>(1, state.sheet().slots());
  if (!counted_) counted_ = state.slot_seconds();
  for (;;) {
    if (!state.has_open() && !state.has_next()) return End(coordinator, state, "");
    const Cost cost = state.has_open() ? CostOfOpen(state) : CostOf(state.next());
    const bool is_paid = state.has_open() && state.open().round().round() == paid_round_;
    const std::string why_not = is_paid ? "" : WhyNot(cost);
    if (!why_not.empty()) {
      if (!state.has_open()) TellStopped(coordinator, state, why_not);
      return End(coordinator, state, why_not);
    }
    if (state.has_open()) {
      const std::int64_t round = state.open().round().round();
      if (!is_paid) Pay(cost, round);
      PELAB_RETURN_IF_ERROR(FinishRound(coordinator, state));
      if (state.has_open() && state.open().round().round() == round) {
        return End(coordinator, state, "");
      }
    } else {
      PELAB_RETURN_IF_ERROR(Begin(coordinator, cost, state));
    }
  }
}

void Settler::Pay(const Cost& cost, std::int64_t round) {
  spent_jobs_ += cost.jobs;
  paid_round_ = round;
}

void Settler::CountTime(const v1::Settlement& state) {
  spent_seconds_ += std::max(0.0, state.slot_seconds() - *counted_);
  counted_ = state.slot_seconds();
}

void Settler::SayEnded(const v1::Settlement& state) const {
  Say(Concat("round ", state.sheet().ended_rounds(),
             " ended: ", StandingText(state.claims(), file_.bound.claims.size())));
}

absl::Status Settler::Begin(Coordinator& coordinator, const Cost& cost, v1::Settlement& state) {
  const v1::PlannedRound next = state.next();
  if (cost.jobs > 0) PELAB_RETURN_IF_ERROR(host_.ensure_worker());
  Say(RoundText(next));
  v1::AdvanceRequest advance;
  advance.mutable_sheet()->set_sheet(Concat(state.sheet().sheet_id()));
  advance.set_begin_round(next.round());
  advance.set_again(!std::exchange(revived_, true));
  const std::int64_t before = state.sheet().ended_rounds();
  PELAB_ASSIGN_OR_RETURN(state, coordinator.Advance(advance));
  Pay(cost, next.round());
  counted_ = *counted_ + next.stored_seconds();  // others paid for these
  if (!state.has_open() && state.sheet().ended_rounds() > before) SayEnded(state);
  return absl::OkStatus();
}

absl::StatusOr<v1::Settlement> Settler::Register(Coordinator& coordinator) {
  PELAB_RETURN_IF_ERROR(SendOwnFiles(file_.own_files, coordinator));
  PELAB_ASSIGN_OR_RETURN(const auto known, FindRegistered(coordinator, file_.sha256));
  if (known) {
    if (!announced_ && (options_.any_seeds || options_.slots != 0)) {
      Say("note: --slots and --no-fresh-seeds are for a new sheet; this one is registered already");
    }
    v1::AdvanceRequest request;
    request.mutable_sheet()->set_sheet(Concat(known->row().sheet_id()));
    return coordinator.Advance(request);
  }
  if (!options_.put_aside.empty()) {
    return absl::FailedPreconditionError(
        "the sheet is not registered, so it has no round whose e-values a claim could keep; leave "
        "the claim out of the sheet");
  }
  if (options_.slots == 0) PELAB_RETURN_IF_ERROR(WaitForSlots(coordinator));
  v1::RegisterSheetRequest request;
  request.set_document(file_.document);
  request.set_file_name(file_.name);
  request.set_sweep_document(file_.sweep_document);
  request.set_any_seeds(options_.any_seeds);
  request.set_slots(options_.slots);
  return coordinator.RegisterSheet(request);
}

absl::StatusOr<v1::Settlement> Settler::PutAside(Coordinator& coordinator,
                                                 const v1::Settlement& state) const {
  v1::AdvanceRequest request;
  request.mutable_sheet()->set_sheet(Concat(state.sheet().sheet_id()));
  request.mutable_put_aside()->Add(options_.put_aside.begin(), options_.put_aside.end());
  PELAB_ASSIGN_OR_RETURN(v1::Settlement now, coordinator.Advance(request));
  for (const v1::SheetClaimRow& claim : now.claims()) {
    const bool named = std::find(options_.put_aside.begin(), options_.put_aside.end(),
                                 claim.claim()) != options_.put_aside.end();
    if (!named || claim.standing() == "put aside") continue;
    Say(Concat("note: ", claim.claim(), " gets no further seeds anyway (",
               claim.standing() == "decided" ? claim.verdict() : "given up", ")"));
  }
  return now;
}

// The size of rounds depends on the slots, so a worker of this command has to be there.
absl::Status Settler::WaitForSlots(Coordinator& coordinator) {
  PELAB_RETURN_IF_ERROR(host_.ensure_worker());
  const absl::Time give_up = absl::Now() + limits::kStart;
  do {
    PELAB_ASSIGN_OR_RETURN(const auto workers, coordinator.Workers());
    const bool online =
        std::any_of(workers.begin(), workers.end(), [](const v1::WorkerRow& worker) {
          return worker.state() == "online" && worker.slots() > 0;
        });
    if (online) return absl::OkStatus();
    absl::SleepFor(limits::kRunPoll);
  } while (absl::Now() < give_up);
  return absl::FailedPreconditionError(
      "no worker is connected, so nobody knows how many slots a round is to fill; start one, or "
      "say how many there will be with --slots N");
}

void Settler::Announce(const v1::Settlement& state) const {
  const v1::SheetRow& sheet = state.sheet();
  std::string text = Concat("sheet ", sheet.sheet_id(), " ", sheet.name(), ": ");
  if (state.registered_now()) {
    text += Concat("registered now; its seeds begin at ", sheet.first_seed());
    if (sheet.fresh_from() > sheet.first_seed()) {
      text += Concat(", and those up to ", sheet.fresh_from() - 1, " are exploratory");
    }
  } else {
    text += Concat("registered ", render::FormatTime(sheet.created_at_ms()), "; ",
                   render::Counted(sheet.ended_rounds(), "round"), " so far, ",
                   StandingText(state.claims(), file_.bound.claims.size()));
  }
  Say(text);
}

// Waits until the round has ended, or until its jobs do not come. Another command may have begun
// the next round by then. The first call queues jobs again that were cancelled or could not run.
absl::Status Settler::FinishRound(Coordinator& coordinator, v1::Settlement& state) {
  const std::int64_t round = state.open().round().round();
  v1::AdvanceRequest advance;
  advance.mutable_sheet()->set_sheet(Concat(state.sheet().sheet_id()));
  if (!std::exchange(revived_, true)) {
    advance.set_again(true);
    PELAB_ASSIGN_OR_RETURN(state, coordinator.Advance(advance));
    advance.set_again(false);
  }
  const auto comes = [&] {
    return state.has_open() && state.open().round().round() == round &&
           state.open().blocked_jobs() == 0;
  };
  while (comes()) {
    PELAB_RETURN_IF_ERROR(host_.ensure_worker());
    PELAB_RETURN_IF_ERROR(host_.watch(Concat(state.sheet().sweep_id())));
    PELAB_ASSIGN_OR_RETURN(state, coordinator.Advance(advance));
    if (comes()) absl::SleepFor(limits::kRunPoll);
  }
  CountTime(state);
  if (!state.has_open() || state.open().round().round() != round) SayEnded(state);
  return absl::OkStatus();
}

// Tells the coordinator, which may notify people. An error costs only the notification.
void Settler::TellStopped(Coordinator& coordinator, const v1::Settlement& state,
                          const std::string& why) {
  v1::AdvanceRequest request;
  request.mutable_sheet()->set_sheet(Concat(state.sheet().sheet_id()));
  request.set_stopped_by(why);
  const absl::Status told = coordinator.Advance(request).status();
  if (told.ok()) return;
  Say(Concat("the coordinator was not told why settling stopped: ",
             render::Escape(std::string(told.message()))));
}

Settler::Cost Settler::CostOf(const v1::PlannedRound& next) {
  return {.jobs = next.jobs() - next.stored(),
          .seconds = next.expected_seconds(),
          .name = "the next round"};
}

Settler::Cost Settler::CostOfOpen(const v1::Settlement& state) {
  const std::int64_t jobs = state.open().open_jobs();
  const double of_job =
      state.jobs() > 0 ? state.slot_seconds() / static_cast<double>(state.jobs()) : 0;
  return {.jobs = jobs,
          .seconds = of_job * static_cast<double>(jobs),
          .name = Concat("the rest of round ", state.open().round().round())};
}

std::string Settler::WhyNot(const Cost& cost) const {
  if (cost.jobs == 0) return "";
  const Budget& budget = options_.budget;
  const absl::Duration expected = absl::Seconds(cost.seconds);
  if (budget.jobs && spent_jobs_ + cost.jobs > *budget.jobs) {
    return Concat("--max-jobs ", *budget.jobs, ": ", spent_jobs_, " were run, and ", cost.name,
                  " has ", cost.jobs);
  }
  if (budget.slot_time) {
    const absl::Duration left = *budget.slot_time - absl::Seconds(spent_seconds_);
    if (left <= absl::ZeroDuration() || expected > left) {
      return Concat("--budget ", render::FormatSeconds(absl::ToDoubleSeconds(*budget.slot_time)),
                    ": ", render::FormatSeconds(spent_seconds_), " were spent",
                    cost.seconds > 0 ? Concat(", and ", cost.name, " takes about ",
                                              render::FormatSeconds(cost.seconds))
                                     : "");
    }
  }
  if (budget.until && absl::Now() + expected / static_cast<double>(slots_) > *budget.until) {
    return Concat("--until: ", cost.name, " would not end in time");
  }
  return "";
}

absl::StatusOr<int> Settler::End(Coordinator& coordinator, const v1::Settlement& state,
                                 const std::string& why) {
  PELAB_ASSIGN_OR_RETURN(const v1::Sheet sheet,
                         coordinator.Sheet(Concat(state.sheet().sheet_id())));
  PELAB_ASSIGN_OR_RETURN(const JudgedSheet judged, JudgeRegistered(coordinator, sheet));
  PutVerdicts(context_, judged);
  if (!why.empty()) Say(Concat("stopped by ", why, "; settle the sheet again to go on"));
  if (state.has_open() && (why.empty() || state.open().blocked_jobs() > 0)) {
    const v1::OpenRound& open = state.open();
    Say(Concat("pelab: round ", open.round().round(), " cannot be completed: ", open.blocked_jobs(),
               " of its ", render::Counted(open.jobs(), "job"),
               open.blocked_jobs() == 1 ? " does" : " do", " not come"));
    for (const v1::BlockedJob& job : open.blocked()) {
      Say(Concat("  ", job.job_id() > 0 ? Concat("job ", job.job_id(), ", ") : "",
                 render::Escape(job.label()), ": ", render::Escape(job.reason())));
    }
    Say("settle the sheet again to queue them again, or put aside the claims that need them with "
        "--put-aside CLAIM");
    return kExitIncomplete;
  }
  return kExitOk;
}

}  // namespace pelab::client
