// The whole table of transitions, written a second time and compared entry by entry.
#include "core/state/state.h"

#include <gtest/gtest.h>

#include <map>
#include <utility>

namespace pelab::state {
namespace {

constexpr JobState kStates[] = {JobState::kQueued,    JobState::kAssigned, JobState::kRunning,
                                JobState::kSucceeded, JobState::kFailed,   JobState::kCancelled};
constexpr Event kEvents[] = {Event::kAssign, Event::kStart,   Event::kSucceed, Event::kFail,
                             Event::kLose,   Event::kPreempt, Event::kStopped, Event::kClaimsGone,
                             Event::kRetry,  Event::kAnalyze};
constexpr ErrorKind kKinds[] = {
    ErrorKind::kNone, ErrorKind::kBadSpec,  ErrorKind::kOutOfMemory, ErrorKind::kNonFiniteLoss,
    ErrorKind::kIo,   ErrorKind::kInternal, ErrorKind::kTrainerDied, ErrorKind::kStalled};
constexpr Progress kAllProgress[] = {Progress::kNone, Progress::kWaited, Progress::kRepeated,
                                     Progress::kAdvanced};

struct Want {
  JobState to;
  std::optional<Outcome> outcome;
  enum Count { kSame, kLost, kFailed, kReset, kPreempted } count = kSame;
};

using S = JobState;
using E = Event;
using O = Outcome;

// Transitions without a row cannot happen. For losses and failures the rows show the case that the
// budget is not used up.
const std::map<std::pair<S, E>, Want>& Table() {
  static const auto& table = *new std::map<std::pair<S, E>, Want>{
      {{S::kQueued, E::kAssign}, {S::kAssigned, {}}},
      {{S::kQueued, E::kClaimsGone}, {S::kCancelled, {}}},
      {{S::kAssigned, E::kStart}, {S::kRunning, {}}},
      {{S::kAssigned, E::kFail}, {S::kQueued, O::kFailed, Want::kFailed}},
      {{S::kAssigned, E::kLose}, {S::kQueued, O::kLost, Want::kLost}},
      {{S::kAssigned, E::kPreempt}, {S::kQueued, O::kPreempted, Want::kPreempted}},
      {{S::kAssigned, E::kStopped}, {S::kQueued, O::kLost, Want::kLost}},
      {{S::kAssigned, E::kClaimsGone}, {S::kCancelled, {}}},
      {{S::kRunning, E::kSucceed}, {S::kSucceeded, O::kSucceeded}},
      {{S::kRunning, E::kFail}, {S::kQueued, O::kFailed, Want::kFailed}},
      {{S::kRunning, E::kLose}, {S::kQueued, O::kLost, Want::kLost}},
      {{S::kRunning, E::kPreempt}, {S::kQueued, O::kPreempted, Want::kPreempted}},
      {{S::kRunning, E::kStopped}, {S::kQueued, O::kLost, Want::kLost}},
      {{S::kRunning, E::kClaimsGone}, {S::kCancelled, {}}},
      {{S::kFailed, E::kRetry}, {S::kQueued, {}, Want::kReset}},
      {{S::kCancelled, E::kStart}, {S::kCancelled, {}}},
      {{S::kCancelled, E::kSucceed}, {S::kCancelled, O::kCancelled}},
      {{S::kCancelled, E::kFail}, {S::kCancelled, O::kCancelled}},
      {{S::kCancelled, E::kPreempt}, {S::kCancelled, O::kCancelled}},
      {{S::kCancelled, E::kStopped}, {S::kCancelled, O::kCancelled}},
      {{S::kCancelled, E::kLose}, {S::kCancelled, O::kLost}},
      {{S::kCancelled, E::kRetry}, {S::kQueued, O::kSuperseded, Want::kReset}},
      {{S::kSucceeded, E::kStart}, {S::kSucceeded, {}}},
      {{S::kSucceeded, E::kSucceed}, {S::kSucceeded, O::kSucceeded}},
      {{S::kSucceeded, E::kFail}, {S::kSucceeded, O::kCancelled}},
      {{S::kSucceeded, E::kPreempt}, {S::kSucceeded, O::kCancelled}},
      {{S::kSucceeded, E::kStopped}, {S::kSucceeded, O::kCancelled}},
      {{S::kSucceeded, E::kLose}, {S::kSucceeded, O::kLost}},
      {{S::kSucceeded, E::kAnalyze}, {S::kQueued, O::kSuperseded, Want::kReset}},
  };
  return table;
}

// Expects the table's entry for one state and event, with the budgets of 5 losses and 3 failures
// written out.
void ExpectCell(S from, E event, const Facts& facts) {
  SCOPED_TRACE(testing::Message() << Name(from) << " event " << static_cast<int>(event) << " lost "
                                  << facts.lost_attempts << " failed " << facts.failed_attempts
                                  << " " << Name(facts.error) << " trained " << facts.trained
                                  << " progress " << static_cast<int>(facts.progress));
  const auto got = Next(from, event, facts);
  const auto want = Table().find({from, event});
  ASSERT_EQ(got.has_value(), want != Table().end());
  if (!got) return;
  S to = want->second.to;
  const S given_up = facts.trained ? S::kSucceeded : S::kFailed;
  if (event == E::kClaimsGone && facts.trained) to = S::kSucceeded;
  bool back_off = false;
  int want_lost = facts.lost_attempts;
  int want_failed = facts.failed_attempts;
  auto want_outcome = want->second.outcome;
  auto count = want->second.count;
  if (count == Want::kPreempted) {
    const bool advanced = facts.progress == Progress::kAdvanced;
    const bool asked_for = facts.error == ErrorKind::kNone;
    if (asked_for && facts.progress != Progress::kNone) {
      count = Want::kSame;
      if (advanced) want_lost = 0;
    } else if (asked_for || advanced || facts.progress == Progress::kWaited) {
      count = Want::kLost;
    } else {
      count = Want::kFailed;
      want_outcome = O::kFailed;
    }
  }
  switch (count) {
    case Want::kPreempted:
    case Want::kSame:
      break;
    case Want::kLost:
      want_lost = facts.progress == Progress::kAdvanced ? 1 : want_lost + 1;
      if (want_lost >= 5) to = given_up;
      break;
    case Want::kFailed:
      want_failed += 1;
      back_off = want_failed < 3 && facts.error != ErrorKind::kBadSpec &&
                 facts.error != ErrorKind::kOutOfMemory && facts.error != ErrorKind::kNonFiniteLoss;
      if (!back_off) to = given_up;
      break;
    case Want::kReset:
      want_lost = want_failed = 0;
      break;
  }
  EXPECT_EQ(got->to, to);
  EXPECT_EQ(got->attempt_outcome, want_outcome);
  EXPECT_EQ(got->lost_attempts, want_lost);
  EXPECT_EQ(got->failed_attempts, want_failed);
  EXPECT_EQ(got->back_off, back_off);
}

TEST(Next, IsTheTableInEveryCell) {
  for (const S from : kStates) {
    for (const E event : kEvents) {
      for (int lost = 0; lost <= 6; ++lost) {
        for (int failed = 0; failed <= 4; ++failed) {
          for (const ErrorKind kind : kKinds) {
            for (const bool trained : {false, true}) {
              for (const Progress progress : kAllProgress) {
                ExpectCell(from, event,
                           {.error = kind,
                            .trained = trained,
                            .progress = progress,
                            .lost_attempts = lost,
                            .failed_attempts = failed,
                            .budgets = {}});
              }
            }
          }
        }
      }
    }
  }
}

TEST(Next, ATrainedJobIsNeverFailedNorCancelled) {
  for (const S from : {S::kQueued, S::kAssigned, S::kRunning, S::kSucceeded}) {
    for (const E event : kEvents) {
      const auto got = Next(from, event,
                            {.error = ErrorKind::kBadSpec,
                             .trained = true,
                             .lost_attempts = 9,
                             .failed_attempts = 9,
                             .budgets = {}});
      if (!got) continue;
      EXPECT_NE(got->to, S::kFailed) << static_cast<int>(event);
      EXPECT_NE(got->to, S::kCancelled) << static_cast<int>(event);
    }
  }
}

TEST(Next, OnlyARetryOrAnAnalysisLeavesATerminalState) {
  for (const S from : {S::kSucceeded, S::kFailed, S::kCancelled}) {
    for (const E event : kEvents) {
      const auto got = Next(from, event, {});
      if (got && event != E::kRetry && event != E::kAnalyze) {
        EXPECT_EQ(got->to, from);
      }
    }
  }
}

TEST(Next, BudgetsAreTheCallers) {
  const Budgets once{.lost = 1, .failed = 1};
  EXPECT_EQ(Next(S::kRunning, E::kLose, {.budgets = once})->to, S::kFailed);
  EXPECT_EQ(Next(S::kRunning, E::kFail, {.error = ErrorKind::kIo, .budgets = once})->to,
            S::kFailed);
}

// A job on hosts that come and go does not fail as long as it makes progress.
TEST(Next, AnAttemptThatAdvancedTheJobGivesItAFreshBudget) {
  const auto lost = [](int before, Progress progress) {
    return Next(S::kRunning, E::kLose, {.progress = progress, .lost_attempts = before});
  };
  EXPECT_EQ(lost(4, Progress::kAdvanced)->to, S::kQueued);
  EXPECT_EQ(lost(4, Progress::kAdvanced)->lost_attempts, 1);
  EXPECT_EQ(lost(4, Progress::kRepeated)->to, S::kFailed);
}

// A trainer that always exits with 75 and never makes progress.
TEST(Next, ATrainerThatStopsByItselfAndGotNowhereHasFailed) {
  const Facts facts{.error = ErrorKind::kTrainerDied, .progress = Progress::kRepeated};
  const auto first = Next(S::kRunning, E::kPreempt, facts);
  EXPECT_EQ(first->attempt_outcome, O::kFailed);
  EXPECT_TRUE(first->back_off);
  EXPECT_EQ(first->failed_attempts, 1);
  const Facts third{.error = ErrorKind::kTrainerDied, .failed_attempts = 2};
  EXPECT_EQ(Next(S::kRunning, E::kPreempt, third)->to, S::kFailed);
}

TEST(Names, RoundTrip) {
  for (const S state : kStates) EXPECT_EQ(ParseJobState(Name(state)), state);
  for (const ErrorKind kind : kKinds) EXPECT_EQ(ParseErrorKind(Name(kind)), kind);
  for (const O outcome :
       {O::kSucceeded, O::kFailed, O::kLost, O::kPreempted, O::kCancelled, O::kSuperseded}) {
    EXPECT_EQ(ParseOutcome(Name(outcome)), outcome);
  }
  EXPECT_EQ(Name(S::kQueued), "queued");
  EXPECT_EQ(Name(O::kPreempted), "preempted");
  EXPECT_EQ(Name(ErrorKind::kNonFiniteLoss), "non_finite_loss");
  EXPECT_EQ(ParseJobState("paused"), std::nullopt);
  EXPECT_EQ(ParseOutcome(""), std::nullopt);
}

TEST(BackOff, DoublesToAMinuteTimesJitter) {
  EXPECT_EQ(BackOffMilliseconds(1, 0.5), 500);
  EXPECT_EQ(BackOffMilliseconds(2, 0.5), 1000);
  EXPECT_EQ(BackOffMilliseconds(3, 0.75), 3000);
  EXPECT_EQ(BackOffMilliseconds(7, 0.5), 30'000);
  EXPECT_EQ(BackOffMilliseconds(1000, 0.5), 30'000);
  EXPECT_EQ(BackOffMilliseconds(0, 0.5), 500);
}

}  // namespace
}  // namespace pelab::state
