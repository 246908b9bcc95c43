// Submitting to an existing sweep, reused tokens, the counts of a cancelled sweep, names and notes.
#include <gmock/gmock.h>

#include "tests/contract/store/store_fixture.h"

namespace pelab::store {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr char kCounts[] =
    "SELECT queued, assigned, running, succeeded, failed, cancelled FROM v_sweeps "
    "WHERE sweep_id = ";

class GoingOnTest : public StoreTest {
 protected:
  // Submits some job cells of a sweep named "s"; every submission has a token of its own.
  SweepStored Ask(const std::string& document, std::uint64_t cells, bool go_on = true,
                  const std::string& overrides = "[]") {
    return Do<SweepStored>(SubmitSweep{.name = "s",
                                       .protocol = "clean",
                                       .document = document,
                                       .file_name = "s.yaml",
                                       .overrides_json = overrides,
                                       .client_token = absl::StrCat("token-", ++tokens_),
                                       .analyses_json = "[]",
                                       .resources_json = "{}",
                                       .request_sha256 = document,
                                       .go_on = go_on,
                                       .cells = cells,
                                       .now = 1000});
  }
  SliceStored Slice(std::int64_t sweep_id, const std::vector<NewCell>& cells) {
    return Do<SliceStored>(ExpandSlice{.sweep_id = sweep_id,
                                       .from = 0,
                                       .next = cells.size(),
                                       .last = true,
                                       .cells = cells,
                                       .now = 1000});
  }
  void Succeed(std::int64_t job_id, std::uint64_t token) {
    Attempt attempt = Assign(job_id, token);
    Train(attempt, 0, 3);
    Event(attempt.Next(SucceededEvent()));
    ASSERT_EQ(JobState(job_id), "succeeded");
  }
  std::string Counts(std::int64_t sweep_id) { return Text(absl::StrCat(kCounts, sweep_id)); }
  std::string Epochs(std::int64_t sweep_id) {
    return Text(
        absl::StrCat("SELECT epochs_done, epochs FROM v_sweeps WHERE sweep_id = ", sweep_id));
  }

  int tokens_ = 0;
};
INSTANTIATE_TEST_SUITE_P(Backends, GoingOnTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "File" : "Memory"; });

TEST_P(GoingOnTest, TheSameDocumentJoinsTheLiveSweepOfItsName) {
  const SweepStored first = Ask("a", 2);
  EXPECT_FALSE(first.went_on);
  Slice(first.sweep_id, {Cell(0, "k0"), Cell(1, "k1")});
  const SweepStored again = Ask("a", 2);
  EXPECT_TRUE(again.went_on);
  EXPECT_FALSE(again.reopened || again.expands_again);
  EXPECT_EQ(again.sweep_id, first.sweep_id);
  EXPECT_EQ(Text("SELECT count(*), max(state) FROM sweeps"), "1 active");
  EXPECT_EQ(Text("SELECT count(*) FROM v_sweep_jobs WHERE sweep = 's'"), "2");
}

TEST_P(GoingOnTest, AnotherDocumentOfTheNameIsRefusedUnlessItIsToBeAnotherSweep) {
  const SweepStored first = Ask("a", 1);
  const SweepStored refused = Ask("b", 1);
  EXPECT_EQ(refused.refusal, SweepStored::kNameTaken);
  EXPECT_EQ(refused.sweep_id, first.sweep_id);
  EXPECT_EQ(Ask("a", 1, true, R"([{"field":"train.lr","value":"1"}])").refusal,
            SweepStored::kNameTaken);
  EXPECT_EQ(Text("SELECT count(*) FROM sweeps"), "1");
  const SweepStored other = Ask("b", 1, /*go_on=*/false);
  EXPECT_NE(other.sweep_id, first.sweep_id);
  // From now on each document continues its own sweep.
  EXPECT_EQ(Ask("a", 1).sweep_id, first.sweep_id);
  EXPECT_EQ(Ask("b", 1).sweep_id, other.sweep_id);
  // The name is compared on its own. If a field has two values, the later one counts.
  EXPECT_EQ(Ask("a", 1, true, R"([{"field":"name","value":"s"}])").sweep_id, first.sweep_id);
}

TEST_P(GoingOnTest, ACancelledSweepIsReopenedAndItsCancelledJobsAreQueuedAgain) {
  const std::vector<NewCell> cells = {Cell(0, "k0"), Cell(1, "k1"), Cell(2, "k2")};
  const std::int64_t sweep = Ask("a", 3).sweep_id;
  Slice(sweep, cells);
  Succeed(1, 11);
  Attempt running = Assign(2, 12);
  Train(running, 0, 2);
  Do<Cancelled>(CancelSweep{sweep, 4000});
  EXPECT_EQ(Counts(sweep), "0 0 0 1 0 2");
  const SweepStored again = Ask("a", 3);
  EXPECT_TRUE(again.went_on && again.reopened && again.expands_again);
  EXPECT_EQ(SweepState(sweep), "expanding");
  if (GetParam()) Open();  // it also continues after a restart
  const SliceStored slice = Slice(sweep, cells);
  EXPECT_TRUE(slice.applied);
  EXPECT_THAT(slice.superseded, ElementsAre(running.id));
  std::vector<std::int64_t> ready;
  for (const ReadyJob& job : slice.ready) ready.push_back(job.job_id);
  EXPECT_THAT(ready, ElementsAre(2, 3));
  EXPECT_EQ(SweepState(sweep), "active");
  EXPECT_EQ(Counts(sweep), "2 0 0 1 0 0");
  EXPECT_EQ(Text("SELECT new_jobs, stored_jobs, in_flight_jobs, failed_earlier_jobs FROM sweeps"),
            "2 1 0 0");
  Succeed(2, 13);
  Succeed(3, 14);
  EXPECT_EQ(SweepState(sweep), "finished");
  EXPECT_EQ(Text("SELECT count(*) FROM jobs"), "3");
  EXPECT_EQ(Text("SELECT expands_again FROM sweeps"), "0");
}

TEST_P(GoingOnTest, AFreshSweepGoesOnWithItsOwnGeneration) {
  const std::int64_t first = Submit("x", {Cell(0, "k0")}, false, 0, "[]");
  Succeed(1, 11);
  const auto fresh = Do<SweepStored>(SubmitSweep{.name = "s",
                                                 .document = "a",
                                                 .overrides_json = "[]",
                                                 .client_token = "fresh",
                                                 .analyses_json = "[]",
                                                 .fresh = true,
                                                 .cells = 1});
  Slice(fresh.sweep_id, {Cell(0, "k0")});
  EXPECT_EQ(Text("SELECT count(*), max(generation) FROM jobs"), "2 2");
  Do<Cancelled>(CancelSweep{fresh.sweep_id, 4000});
  EXPECT_EQ(Ask("a", 1).sweep_id, fresh.sweep_id);
  EXPECT_THAT(Slice(fresh.sweep_id, {Cell(0, "k0")}).ready, SizeIs(1));
  EXPECT_EQ(JobState(2), "queued");
  EXPECT_EQ(Text("SELECT count(*), max(generation) FROM jobs"), "2 2");
  EXPECT_EQ(SweepState(first), "finished");
}

TEST_P(GoingOnTest, AFinishedSweepStaysFinishedAndOnlyItsCancelledJobsAreQueued) {
  const std::vector<NewCell> cells = {Cell(0, "k0"), Cell(1, "k1")};
  const std::int64_t sweep = Ask("a", 2).sweep_id;
  Slice(sweep, cells);
  Succeed(1, 11);
  Do<Cancelled>(CancelJob{2, 4000});
  EXPECT_EQ(SweepState(sweep), "finished");
  SweepStored again = Ask("a", 2);
  EXPECT_TRUE(again.went_on && again.reopened);
  EXPECT_THAT(Slice(sweep, cells).ready, SizeIs(1));
  Succeed(2, 12);
  EXPECT_EQ(SweepState(sweep), "finished");
  again = Ask("a", 2);
  EXPECT_TRUE(again.went_on);
  EXPECT_FALSE(again.reopened);
  EXPECT_THAT(Slice(sweep, cells).ready, IsEmpty());
  EXPECT_EQ(SweepState(sweep), "finished");
  EXPECT_EQ(Text("SELECT new_jobs, stored_jobs FROM sweeps"), "0 2");
}

TEST_P(GoingOnTest, SeedsThatWereAddedAreKept) {
  const std::int64_t sweep = Ask("a", 1).sweep_id;
  Slice(sweep, {Cell(0, "k0")});
  Do<SweepExtended>(ExtendSweep{.sweep_id = sweep, .known = 0, .seeds = "7", .cells = 2});
  Do<SliceStored>(
      ExpandSlice{.sweep_id = sweep, .from = 1, .next = 2, .last = true, .cells = {Cell(1, "k7")}});
  Do<Cancelled>(CancelSweep{sweep, 4000});
  Ask("a", 1);
  EXPECT_EQ(Text("SELECT cells, extensions_json FROM sweeps"), "2 [\"7\"]");
  // The document alone is not the whole sweep.
  Slice(sweep, {Cell(0, "k0")});
  EXPECT_EQ(SweepState(sweep), "expanding");
  Do<SliceStored>(
      ExpandSlice{.sweep_id = sweep, .from = 1, .next = 2, .last = true, .cells = {Cell(1, "k7")}});
  EXPECT_EQ(SweepState(sweep), "active");
  EXPECT_EQ(Counts(sweep), "2 0 0 0 0 0");
}

TEST_P(GoingOnTest, ATokenThatIsUsedAgainMustRepeatItsRequest) {
  SubmitSweep write{.name = "s",
                    .document = "a",
                    .overrides_json = "[]",
                    .client_token = "t",
                    .analyses_json = "[]",
                    .request_sha256 = "of a",
                    .go_on = true};
  const std::int64_t sweep = Do<SweepStored>(write).sweep_id;
  EXPECT_TRUE(Do<SweepStored>(write).repeated_token);
  SubmitSweep other = write;
  other.document = "b";
  other.request_sha256 = "of b";
  EXPECT_EQ(Do<SweepStored>(other).refusal, SweepStored::kTokenUsed);
  // The token of a submission to an existing sweep is remembered too.
  write.client_token = other.client_token = "u";
  EXPECT_TRUE(Do<SweepStored>(write).went_on);
  const SweepStored again = Do<SweepStored>(write);
  EXPECT_TRUE(again.repeated_token && again.went_on);
  EXPECT_EQ(again.sweep_id, sweep);
  EXPECT_EQ(Do<SweepStored>(other).refusal, SweepStored::kTokenUsed);
  // An older database has no hashes: then the documents are compared.
  Text("DELETE FROM submissions");
  write.client_token = other.client_token = "t";
  EXPECT_TRUE(Do<SweepStored>(write).repeated_token);
  EXPECT_EQ(Do<SweepStored>(other).refusal, SweepStored::kTokenUsed);
  EXPECT_EQ(Text("SELECT count(*) FROM sweeps"), "1");
}

TEST_P(GoingOnTest, ACancelledSweepCountsNothingThatOthersDoWithItsJobs) {
  const std::int64_t first = Submit("a", {Cell(0, "k0"), Cell(1, "k1")}, false, 0, "[]");
  Attempt running = Assign(1, 11);
  Train(running, 0, 2);
  const std::int64_t second = Submit("b", {Cell(0, "k0"), Cell(1, "k1")}, false, 0, "[]");
  Do<Cancelled>(CancelSweep{first, 4000});
  EXPECT_EQ(Counts(first), "0 0 0 0 0 2") << "though its jobs wait and run for the other";
  EXPECT_EQ(Epochs(first), "2 6");
  EXPECT_EQ(Counts(second), "1 0 1 0 0 0");
  // The attempt is lost, and the job starts again.
  Do<EventStored>(EndAttempt{running.id, state::Event::kLose, "gone", 5000});
  Attempt anew = Assign(1, 12);
  Train(anew, 0, 1);
  EXPECT_EQ(Epochs(first), "2 6") << "what was done when it was cancelled";
  EXPECT_EQ(Epochs(second), "1 6");
  // The result counts, whichever attempt trained the job.
  for (int epoch = 1; epoch < 3; ++epoch) Event(anew.Next(MakeEpoch(epoch)));
  Event(anew.Next(SucceededEvent()));
  EXPECT_EQ(Counts(first), "0 0 0 1 0 1");
  EXPECT_EQ(Epochs(first), "3 6");
  EXPECT_EQ(Counts(second), "1 0 0 1 0 0");
}

TEST_P(GoingOnTest, AJobThatWasCancelledAndIsTriedAgainIsCountedAgain) {
  const std::int64_t sweep = Submit("a", {Cell(0, "k0")}, false, 0, "[]");
  Attempt running = Assign(1, 11);
  Train(running, 0, 2);
  Do<Cancelled>(CancelJob{1, 4000});
  EXPECT_EQ(Counts(sweep), "0 0 0 0 0 1");
  EXPECT_EQ(Epochs(sweep), "2 3");
  Do<Retried>(RetryJob{.job_id = 1, .now = 5000});
  EXPECT_EQ(Counts(sweep), "1 0 0 0 0 0");
  EXPECT_EQ(Epochs(sweep), "2 3");
}

TEST_P(GoingOnTest, ASweepHasTheProtocolsThatItsJobsSay) {
  const std::int64_t sweep = Ask("a", 2).sweep_id;
  NewCell custom = Cell(0, "k0");
  custom.protocol_label = "custom";
  Slice(sweep, {custom});
  EXPECT_EQ(Text("SELECT protocol FROM v_sweeps"), "custom");
  Do<SweepExtended>(ExtendSweep{.sweep_id = sweep, .known = 0, .seeds = "7", .cells = 3});
  Do<SliceStored>(
      ExpandSlice{.sweep_id = sweep, .from = 1, .next = 3, .last = true, .cells = {Cell(1, "k1")}});
  EXPECT_EQ(Text("SELECT protocol FROM v_sweeps"), "clean,custom");
}

TEST_P(GoingOnTest, NamesAndNotes) {
  const std::int64_t first = Submit("a", {Cell(0, "k0")});
  const std::int64_t second = Submit("b", {Cell(0, "k1")});
  EXPECT_EQ(Do<SweepLabeled>(LabelSweep{.sweep_id = second, .name = "sweep-a"}).has_name, first);
  EXPECT_EQ(Text("SELECT group_concat(name) FROM v_sweeps"), "sweep-a,sweep-b");
  EXPECT_TRUE(Do<SweepLabeled>(LabelSweep{.sweep_id = second, .name = "best"}).changed);
  EXPECT_FALSE(Do<SweepLabeled>(LabelSweep{.sweep_id = second, .name = "best"}).changed);
  EXPECT_TRUE(Do<SweepLabeled>(LabelSweep{.sweep_id = second, .note = "figure 3"}).changed);
  EXPECT_EQ(Text("SELECT name, note FROM v_sweeps WHERE sweep_id = 2"), "best figure 3");
  EXPECT_TRUE(Do<SweepLabeled>(LabelSweep{.sweep_id = second, .note = ""}).changed);
  EXPECT_EQ(Text("SELECT note FROM v_sweeps WHERE sweep_id = 2"), "");
  EXPECT_FALSE(Do<SweepLabeled>(LabelSweep{.sweep_id = 99, .note = "x"}).found);
}

}  // namespace
}  // namespace pelab::store
