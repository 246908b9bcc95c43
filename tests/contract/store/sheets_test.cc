// Claim sheets in the store: registration, rounds in order, and what ends them.
#include <gmock/gmock.h>

#include "tests/contract/store/store_fixture.h"

namespace pelab::store {
namespace {

class SheetsTest : public StoreTest {
 protected:
  static RegisterSheet Sheet(const std::string& sha256, std::int64_t first_seed = 0) {
    return {.name = "s",
            .sha256 = sha256,
            .document = "sheet",
            .file_name = "s.yaml",
            .sweep_document = "sweep",
            .templates = {"{\"seed\":\x1f}"},
            .first_seed = first_seed,
            .end_of_seeds = 1000,
            .max_seeds = 40,
            .slots = 2,
            .owner = "",
            .now = 7};
  }
  static BeginRound Round(std::int64_t round, std::size_t known, std::uint64_t cells,
                          const std::string& seeds = "0 of 0") {
    SubmitSweep sweep{.name = "s",
                      .protocol = "clean",
                      .document = "sweep",
                      .file_name = "s.yaml",
                      .overrides_json = "[]",
                      .client_token = "token",
                      .analyses_json = kAnalyses,
                      .resources_json = "{}",
                      .request_sha256 = "token",
                      .now = 7};
    return {.sheet_id = 1,
            .round = round,
            .first_seed = round - 1,
            .end_seed = round,
            .cells_json = "[0]",
            .sweep = std::make_shared<const SubmitSweep>(std::move(sweep)),
            .seeds = {.known = known, .seeds = seeds, .cells = cells},
            .now = 8};
  }
  static EndRound End(std::int64_t round) {
    v1::SheetClaimRow claim;
    claim.set_sheet_id(1);
    claim.set_round(round);
    claim.set_claim("a");
    claim.set_standing("open");
    claim.set_verdict("undecided");
    claim.set_seeds(round);
    claim.set_eligible(round);
    claim.set_log_e_holds(0.1);
    claim.set_log_e_fails(-0.1);
    claim.set_log_threshold(3);
    claim.set_leans_to("holds");
    claim.set_k(1);
    claim.set_n(round);
    claim.set_mean(0.25);
    return {.sheet_id = 1, .round = round, .claims = {claim}, .now = 9};
  }
};
INSTANTIATE_TEST_SUITE_P(Memory, SheetsTest, testing::Values(false));

TEST_P(SheetsTest, ARegisteredSheetStaysAsItIs) {
  const auto first = Do<SheetRegistered>(Sheet("one", 3));
  EXPECT_TRUE(first.is_new);
  RegisterSheet again = Sheet("one", 9);
  again.slots = 5;
  const auto second = Do<SheetRegistered>(again);
  EXPECT_EQ(second.sheet_id, first.sheet_id);
  EXPECT_FALSE(second.is_new);
  EXPECT_EQ(Text("SELECT first_seed FROM sheets"), "3");
  EXPECT_EQ(Text("SELECT slots FROM sheets"), "2");
  EXPECT_EQ(Do<SheetRegistered>(Sheet("two")).has_name, first.sheet_id) << "the name is taken";
  RegisterSheet late = Sheet("two", 961);
  late.name = "late";
  const auto full = Do<SheetRegistered>(late);
  EXPECT_EQ(full.fresh_from, 961);
  EXPECT_EQ(Text("SELECT count(*) FROM sheets"), "1");
}

TEST_P(SheetsTest, RoundsBeginInOrderAndOneAtATime) {
  Do<SheetRegistered>(Sheet("one"));
  EXPECT_FALSE(Do<RoundBegun>(Round(2, 0, 1)).applied) << "the first comes first";
  const auto first = Do<RoundBegun>(Round(1, 0, 1));
  EXPECT_TRUE(first.applied);
  EXPECT_EQ(Text("SELECT sweep_id FROM sheets"), std::to_string(first.sweep_id));
  EXPECT_FALSE(Do<RoundBegun>(Round(1, 1, 2)).applied) << "it was begun";
  EXPECT_FALSE(Do<RoundBegun>(Round(2, 1, 2)).applied) << "the first has not ended";
  EXPECT_TRUE(Do<RoundEnded>(End(1)).applied);
  EXPECT_FALSE(Do<RoundEnded>(End(1)).applied) << "it ends once";
  EXPECT_EQ(Text("SELECT claim || ' ' || seeds || ' ' || leans_to || ' ' || k || ' of ' || n || "
                 "' ' || mean || ' ' || (median_low IS NULL) FROM sheet_claims"),
            "a 1 holds 1 of 1 0.25 1");
  EXPECT_FALSE(Do<RoundBegun>(Round(2, 0, 2)).applied) << "the sweep was extended meanwhile";
  EXPECT_TRUE(Do<RoundBegun>(Round(2, 1, 2, "1 of 0")).applied);
  EXPECT_EQ(Text("SELECT json_array_length(extensions_json) FROM sweeps"), "2");
  EXPECT_TRUE(Do<RoundEnded>(End(2)).applied);
  EXPECT_TRUE(Do<RoundBegun>(Round(3, 0, 2, "")).applied) << "the sweep has these seeds";
  EXPECT_EQ(Text("SELECT count(*) FROM sheet_rounds"), "3");
  EXPECT_EQ(Text("SELECT count(*) FROM sweeps"), "1");
}

TEST_P(SheetsTest, ClaimsArePutAsideAfterTheLastRoundThatHasEnded) {
  Do<SheetRegistered>(Sheet("one"));
  const PutAside first{.sheet_id = 1, .round = 1, .positions = {0}};
  EXPECT_FALSE(Do<ClaimsPutAside>(first).applied) << "no round was begun";
  Do<RoundBegun>(Round(1, 0, 1));
  EXPECT_FALSE(Do<ClaimsPutAside>(first).applied) << "it has not ended";
  Do<RoundEnded>(End(1));
  Do<RoundBegun>(Round(2, 1, 2, "1 of 0"));
  EXPECT_FALSE(Do<ClaimsPutAside>(PutAside{1, 2, {0}}).applied) << "it has not ended";
  EXPECT_TRUE(Do<ClaimsPutAside>(first).applied);
  EXPECT_EQ(Text("SELECT standing FROM sheet_claims"), "put aside");
  EXPECT_FALSE(Do<RoundEnded>(End(2)).applied) << "computed with the claim open";
  EndRound end = End(2);
  end.put_aside = 1;
  end.claims[0].set_standing("put aside");
  EXPECT_TRUE(Do<RoundEnded>(end).applied);
  EXPECT_FALSE(Do<RoundBegun>(Round(3, 2, 3, "2 of 0")).applied) << "planned with it open";
  BeginRound begin = Round(3, 2, 3, "2 of 0");
  begin.put_aside = 1;
  EXPECT_TRUE(Do<RoundBegun>(begin).applied);
}

TEST_P(SheetsTest, AClaimThatIsDecidedIsNotPutAside) {
  Do<SheetRegistered>(Sheet("one"));
  Do<RoundBegun>(Round(1, 0, 1));
  EndRound end = End(1);
  end.claims[0].set_standing("decided");
  Do<RoundEnded>(end);
  EXPECT_TRUE(Do<ClaimsPutAside>(PutAside{1, 1, {0}}).applied);
  EXPECT_EQ(Text("SELECT standing FROM sheet_claims"), "decided");
}

TEST_P(SheetsTest, ADeletedSweepLeavesTheRoundsAndIsNotMadeAgain) {
  Do<SheetRegistered>(Sheet("one"));
  const auto begun = Do<RoundBegun>(Round(1, 0, 0, ""));
  Do<RoundEnded>(End(1));
  Do<SliceStored>(ExpandSlice{.sweep_id = begun.sweep_id, .last = true, .now = 9});
  EXPECT_TRUE(Do<SweepDeleted>(DeleteSweep{.sweep_id = begun.sweep_id, .now = 10}).found);
  EXPECT_EQ(Text("SELECT count(sweep_id) FROM sheets"), "0");
  EXPECT_EQ(Text("SELECT count(*) FROM sheet_claims"), "1");
  const auto next = Do<RoundBegun>(Round(2, 0, 1));
  EXPECT_FALSE(next.applied);
  EXPECT_EQ(next.sweep_id, 0);
}

}  // namespace
}  // namespace pelab::store
