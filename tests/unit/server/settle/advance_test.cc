// Tests the steps by which a sheet is advanced, on a real store: two who take them at the same
// time, steps whose time has passed, and jobs that will not come. No job has to run.
#include "server/settle/advance.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/experiment/sweep.h"
#include "server/service/expander.h"
#include "server/settle/registration.h"
#include "server/store/database.h"
#include "server/store/store.h"
#include "tests/support/fake_clock.h"
#include "tests/support/populator.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace pelab::settle {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

constexpr char kSweep[] = R"(
name: before
protocol: clean
pe: [nope, rope]
task: {name: distance, train_examples: 64, test_examples: 64}
seed: 0..5
model: {d_model: 8, d_ff: 16, heads: 2, layers: 1}
train: {epochs: 1}
analyses: []
)";
constexpr char kSheet[] = R"(
name: settled
sweep: sweep.yaml
false_discovery_rate: 0.5
max_seeds: 6
claims:
  - {id: sure, between: {metric: test_accuracy, cell: pe=rope, low: 0, high: 1}}
  - {id: wrong, above: {metric: test_accuracy, a: pe=rope, b: pe=nope, by: 1}}
)";

class AdvanceTest : public testing::Test {
 protected:
  void SetUp() override {
    auto store = store::Store::Open(dir_ / "pelab.db");
    ASSERT_THAT(store, IsOk());
    store_ = *std::move(store);
    const PopulateOptions options;
    ASSERT_THAT(Populator(options, *store_).Add("sweep.yaml", kSweep), IsOk());
    auto reader = db::Reader::Open(dir_ / "pelab.db");
    ASSERT_THAT(reader, IsOk());
    reader_ = *std::move(reader);
    Register(kSheet, kSweep, /*any_seeds=*/true);
  }

  void Register(const std::string& sheet, const std::string& sweep, bool any_seeds) {
    v1::RegisterSheetRequest request;
    request.set_document(sheet);
    request.set_sweep_document(sweep);
    request.set_any_seeds(any_seeds);
    request.set_slots(1);
    auto write = RegistrationOf(request, "", 7, *reader_);
    ASSERT_THAT(write, IsOk());
    const auto registered = std::get<store::SheetRegistered>(Do(*std::move(write)));
    EXPECT_THAT(CheckRegistered("", 6, registered), IsOk());
  }
  // Somebody has the jobs of the document made again.
  std::int64_t SubmitFresh(const std::string& document) {
    const auto parsed = experiment::ParseSweep(document);
    EXPECT_TRUE(parsed.sweep.has_value());
    const auto stored = std::get<store::SweepStored>(Do(store::SubmitSweep{
        .name = "again",
        .protocol = "clean",
        .document = document,
        .overrides_json = "[]",
        .client_token = "again",
        .analyses_json = "[]",
        .resources_json = R"({"device":"any","memory_bytes":0})",
        .fresh = true,
        .cells = parsed.sweep->cells(),
    }));
    Do(service::BuildSlice(stored.sweep_id, *parsed.sweep, 0, 64, clock_));
    return stored.sweep_id;
  }

  store::WriteResult Do(store::Write write) {
    auto results = store_->Apply({&write, 1});
    EXPECT_THAT(results, IsOk());
    EXPECT_THAT(results->front(), IsOk());
    return *results->front();
  }
  settle::Advance Request(std::int64_t begin, bool again = false,
                          const std::string& sheet = "settled") {
    v1::AdvanceRequest request;
    request.mutable_sheet()->set_sheet(sheet);
    request.set_begin_round(begin);
    request.set_again(again);
    return {clock_, sheets_, request, {}};
  }
  settle::Advance PutAside(const std::vector<std::string>& claims,
                           const std::string& sheet = "settled") {
    v1::AdvanceRequest request;
    request.mutable_sheet()->set_sheet(sheet);
    request.mutable_put_aside()->Add(claims.begin(), claims.end());
    return {clock_, sheets_, request, {}};
  }
  // Stores a change, and makes the cells that it asks for.
  void Store(Advance& advance, Change change) {
    const store::WriteResult result = Do(std::move(change.write));
    auto expansion = advance.Stored(*reader_, result);
    ASSERT_THAT(expansion, IsOk());
    if (!*expansion) return;
    const Expansion& made = **expansion;
    Do(service::BuildSlice(made.sweep_id, made.sweep, made.from, 64, clock_));
  }
  Change NextChange(Advance& advance) {
    auto step = advance.Next(*reader_);
    EXPECT_THAT(step, IsOk());
    EXPECT_TRUE(std::holds_alternative<Change>(*step));
    return std::get<Change>(*std::move(step));
  }
  v1::Settlement Run(Advance advance) {
    for (;;) {
      auto step = advance.Next(*reader_);
      EXPECT_THAT(step, IsOk());
      if (!step.ok()) return {};
      if (auto* const answer = std::get_if<Answer>(&*step)) return answer->settlement;
      Store(advance, std::get<Change>(*std::move(step)));
    }
  }

  std::int64_t Number(const char* sql) {
    return SQLite::Database(dir_ / "pelab.db").execAndGet(sql).getInt64();
  }

  TempDir dir_;
  FakeClock clock_;
  Sheets sheets_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<db::Reader> reader_;
};

TEST_F(AdvanceTest, ARequestEndsARoundWhoseResultsAreStored) {
  const v1::Settlement state = Run(Request(1));
  EXPECT_EQ(state.sheet().ended_rounds(), 1);
  EXPECT_EQ(state.next().round(), 2);
  EXPECT_EQ(state.next().first_seed(), 1);
  EXPECT_EQ(state.next().stored(), 2);
  EXPECT_EQ(Run(Request(1)).sheet().rounds(), 1) << "its turn is over";
  Run(Request(2));
  EXPECT_TRUE(Run(Request(3)).has_next());
  const v1::Settlement end = Run(Request(4));
  EXPECT_EQ(end.sheet().ended_rounds(), 4) << "e(4, 4) = 6.2, and 4 decides both claims";
  EXPECT_FALSE(end.has_next() || end.has_open());
}

TEST_F(AdvanceTest, TwoWhoBeginARoundAtTheSameTimeBeginOne) {
  Advance one = Request(1);
  Advance other = Request(1);
  Change first = NextChange(one);
  Change second = NextChange(other);
  EXPECT_THAT(first.act, HasSubstr("round 1, seeds 0"));
  Store(one, std::move(first));
  Store(other, std::move(second));
  EXPECT_TRUE(std::holds_alternative<store::EndRound>(NextChange(one).write));
  EXPECT_TRUE(std::holds_alternative<store::EndRound>(NextChange(other).write));
  EXPECT_EQ(Run(Request(0)).sheet().rounds(), 1);
}

TEST_F(AdvanceTest, AnEndThatComesLateChangesNothing) {
  Advance begins = Request(1);
  Store(begins, NextChange(begins));
  Advance late = Request(0);
  Change end = NextChange(late);
  Run(Request(2));
  const v1::Settlement before = Run(Request(0));
  Store(late, std::move(end));
  const v1::Settlement after = Run(std::move(late));
  EXPECT_EQ(after.sheet().ended_rounds(), 2);
  EXPECT_EQ(after.SerializeAsString(), before.SerializeAsString());
}

TEST_F(AdvanceTest, ASheetThatOthersAdvanceForEverIsGivenUp) {
  Advance advance = Request(1);
  Change begin = NextChange(advance);
  for (int i = 0; i < 9; ++i) EXPECT_THAT(advance.Next(*reader_), IsOk());  // nothing is stored
  EXPECT_TRUE(absl::IsAborted(advance.Next(*reader_).status()));
}

TEST_F(AdvanceTest, AClaimThatIsPutAsideKeepsItsEvidenceAndGetsNoFurtherSeeds) {
  const v1::Settlement before = Run(Request(1));
  Advance advance = PutAside({"wrong", "wrong"});
  Change change = NextChange(advance);
  EXPECT_THAT(change.act, EndsWith("put aside: wrong")) << "once";
  Store(advance, std::move(change));
  const v1::Settlement aside = Run(std::move(advance));
  ASSERT_EQ(aside.claims_size(), 2);
  EXPECT_EQ(aside.claims(0).standing(), "open");
  EXPECT_EQ(aside.claims(1).standing(), "put aside");
  EXPECT_EQ(aside.next().jobs(), 1) << "rope's; nope is in no open claim";
  const v1::Settlement after = Run(Request(2));
  EXPECT_EQ(after.claims(0).seeds(), 2);
  EXPECT_EQ(after.claims(1).standing(), "put aside");
  EXPECT_EQ(after.claims(1).log_e_fails(), before.claims(1).log_e_fails());
  EXPECT_EQ(Run(PutAside({"wrong"})).SerializeAsString(), after.SerializeAsString())
      << "nothing is left to do";
}

// Somebody changes the results of all jobs.
TEST_F(AdvanceTest, AClaimThatGetsNoFurtherSeedsKeepsItsFigures) {
  Run(Request(1));
  const v1::Settlement before = Run(PutAside({"sure"}));
  ASSERT_GT(before.claims(0).mean(), 0);
  SQLite::Database(dir_ / "pelab.db", SQLite::OPEN_READWRITE)
      .exec("UPDATE jobs SET test_correct = 0");
  const v1::Settlement after = Run(Request(2));
  EXPECT_EQ(after.claims(0).mean(), before.claims(0).mean());
  ASSERT_NE(before.claims(1).mean(), 0);
  EXPECT_EQ(after.claims(1).mean(), 0);
}

TEST_F(AdvanceTest, OnlyClaimsOfTheSheetAndOnlyAfterARoundCanBePutAside) {
  Advance early = PutAside({"wrong"});
  EXPECT_THAT(early.Next(*reader_).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("no round of sheet 1")));
  Run(Request(1));
  Advance unknown = PutAside({"wrung"});
  EXPECT_THAT(unknown.Next(*reader_).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("has no claim \"wrung\"; did you mean wrong?")));
}

// Somebody puts a claim aside after another one has computed the end of the round, or planned the
// next one.
TEST_F(AdvanceTest, AStepThatDoesNotKnowOfAClaimPutAsideIsTakenAgain) {
  Run(Request(1));
  Advance begins = Request(2);
  Change begin = NextChange(begins);
  Run(PutAside({"wrong"}));
  Store(begins, std::move(begin));
  EXPECT_EQ(Number("SELECT count(*) FROM sheet_rounds"), 1);
  Store(begins, NextChange(begins));
  Change end = NextChange(begins);
  Advance aside = PutAside({"sure"});
  Store(aside, NextChange(aside));
  Store(begins, std::move(end));
  EXPECT_EQ(Number("SELECT count(*) FROM sheet_rounds WHERE ended_at IS NULL"), 1);
  const v1::Settlement settled = Run(std::move(begins));
  EXPECT_EQ(settled.sheet().ended_rounds(), 2);
  EXPECT_EQ(settled.claims(0).seeds(), 1) << "it kept the evidence of round 1";
  EXPECT_FALSE(settled.has_next());
}

// Somebody adds seeds to the sheet's sweep, and cancels it after the round has ended.
TEST_F(AdvanceTest, ASweepThatIsCancelledBetweenRoundsIsReopenedIfAsked) {
  Run(Request(1));
  Do(store::ExtendSweep{.sweep_id = 2, .known = 1, .seeds = "700", .cells = 4});
  Do(store::CancelSweep{2, 9});
  Advance refused = Request(2);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused.Next(*reader_).status()));
  EXPECT_TRUE(Run(Request(0, /*again=*/true)).has_next());
  EXPECT_EQ(Run(Request(2)).sheet().ended_rounds(), 2);
}

// The cancel may have withdrawn analyses that fit better than those of other sweeps.
TEST_F(AdvanceTest, NoClaimIsJudgedWhileTheSweepIsCancelled) {
  Advance request = Request(1);
  Store(request, NextChange(request));
  Do(store::ExtendSweep{.sweep_id = 2, .known = 1, .seeds = "700", .cells = 4});
  Do(store::CancelSweep{2, 9});
  EXPECT_TRUE(absl::IsFailedPrecondition(request.Next(*reader_).status()));
  Run(Request(0, /*again=*/true));
  EXPECT_EQ(Run(Request(0)).sheet().ended_rounds(), 1);
}

// Another sheet on the same cells, which begins behind the stored seeds.
constexpr char kLater[] = R"(
name: later
sweep: sweep.yaml
max_seeds: 6
claims:
  - {id: rope, above: {metric: test_accuracy, a: pe=rope, b: pe=nope}}
)";

TEST_F(AdvanceTest, AJobThatIsMadeAgainTakesNoPartInASheet) {
  Register(kLater, kSweep, /*any_seeds=*/false);
  const v1::Settlement before = Run(Request(1, false, "later"));
  ASSERT_EQ(before.open().open_jobs(), 2);
  const std::int64_t again =
      SubmitFresh(absl::StrReplaceAll(kSweep, {{"0..5", "6"}, {"before", "again"}}));
  Do(store::CancelSweep{again, 9});
  const v1::Settlement after = Run(Request(0, false, "later"));
  EXPECT_EQ(after.open().open_jobs(), 2);
  EXPECT_EQ(after.open().blocked_jobs(), 0) << after.open().DebugString();
}

TEST_F(AdvanceTest, AFailedJobOfACancelledSweepIsQueuedAgain) {
  Register(kLater, kSweep, /*any_seeds=*/false);
  const std::int64_t sweep_id = Run(Request(1, false, "later")).sheet().sweep_id();
  store_->database().Execute("UPDATE jobs SET state = 'failed' WHERE seed = 6");
  Do(store::CancelSweep{sweep_id, 9});
  Advance again = Request(0, /*again=*/true, "later");
  Change reopen = NextChange(again);
  EXPECT_TRUE(std::holds_alternative<store::ReopenSweep>(reopen.write));
  Store(again, std::move(reopen));
  const auto retried = std::get<store::Retried>(Do(NextChange(again).write));
  EXPECT_EQ(retried.queued, 1) << retried.refused;
}

// With `order: random` the order of a sweep's cells is not that of its combinations.
TEST_F(AdvanceTest, ARoundOfSomeCellsHasTheirJobsInWhateverOrder) {
  constexpr char kPairs[] = R"(
name: pairs
sweep: sweep.yaml
false_discovery_rate: 0.5
max_seeds: 6
claims:
  - {id: one, above: {metric: test_accuracy, a: pe=rope, b: pe=nope}}
  - {id: other, above: {metric: test_accuracy, a: pe=alibi, b: pe=absolute}}
)";
  const std::string sweep = absl::StrCat(
      absl::StrReplaceAll(kSweep, {{"[nope, rope]", "[nope, rope, alibi, absolute, relative]"},
                                   {"before", "mixed"}}),
      "order: random\n");
  ASSERT_THAT(Populator({}, *store_).Add("mixed.yaml", sweep), IsOk());
  Register(kPairs, sweep, /*any_seeds=*/true);
  EXPECT_EQ(Run(Request(1, false, "pairs")).sheet().ended_rounds(), 1) << "four of five cells";
  EXPECT_EQ(Run(PutAside({"one"}, "pairs")).next().jobs(), 2);
  EXPECT_EQ(Run(Request(2, false, "pairs")).sheet().ended_rounds(), 2);
}

// The jobs were trained without ablations, and their weights were not kept.
TEST_F(AdvanceTest, ASeedWhoseAnalysisIsImpossibleSpeaksForNeitherSide) {
  constexpr char kHeads[] = R"(
name: heads
sweep: sweep.yaml
max_seeds: 6
claims:
  - {id: heads, above: {metric: max_drop, a: pe=rope, b: pe=nope},
     eligible: {metric: test_accuracy, above: 0, by: 0}}
)";
  Register(kHeads, absl::StrReplaceAll(kSweep, {{"analyses: []", "analyses: [head_ablation]"}}),
           /*any_seeds=*/true);
  Advance advance = Request(1, false, "heads");
  Store(advance, NextChange(advance));
  const Change end = NextChange(advance);
  EXPECT_THAT(end.act, HasSubstr("2 of its jobs cannot be analyzed"));
  const auto& claims = std::get<store::EndRound>(end.write).claims;
  ASSERT_EQ(claims.size(), 1u);
  EXPECT_EQ(claims[0].seeds(), 1);
  EXPECT_LT(claims[0].log_e_holds(), 0);
  EXPECT_LT(claims[0].log_e_fails(), 0);
}

TEST_F(AdvanceTest, ASheetThatDoesNotExistIsNotFound) {
  v1::AdvanceRequest request;
  request.mutable_sheet()->set_sheet("other");
  Advance advance(clock_, sheets_, request, {});
  EXPECT_TRUE(absl::IsNotFound(advance.Next(*reader_).status()));
}

}  // namespace
}  // namespace pelab::settle
