// Head ablations with the values derived from their counts, and impossible results.
#include "tests/contract/store/store_fixture.h"

namespace pelab::store {
namespace {

using state::Outcome;
using testing::HasSubstr;

class MatricesTest : public StoreTest {};
INSTANTIATE_TEST_SUITE_P(Backends, MatricesTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "File" : "Memory"; });

TEST_P(MatricesTest, AMatrixIsStoredWithWhatFollowsFromIt) {
  Submit("a", {Cell(0, "k0")});
  TrainWhole();
  EXPECT_EQ(Text("SELECT head, correct, lost, gained, target, nll, nll_drop, "
                 "nll_drop_standard_error FROM v_head_ablation WHERE layer = 0"),
            "0 10 35 3 head 2.5 1.25 0.125 1 42 2 2 head 1.25 0.0 0.0");
  // The mean drop is m = 32/97, its standard error sqrt((38/97 - m^2) / 97).
  EXPECT_EQ(Text("SELECT abs(accuracy_drop - 32.0/97) < 1e-15, "
                 "abs(drop_standard_error - 0.05400655) < 1e-8, "
                 "abs(normalised_drop - (32.0/97) / (42.0/97 - 1.0/70)) < 1e-15, "
                 "chance = 1.0/70 FROM v_head_ablation WHERE layer = 0 AND head = 0"),
            "1 1 1 1");
  EXPECT_EQ(Text("SELECT count(*), sum(correct IS NULL), sum(accuracy_drop IS NULL), "
                 "sum(normalised_drop IS NULL), sum(lost IS NULL), sum(nll_drop IS NULL) "
                 "FROM v_head_ablation"),
            "4 1 1 1 1 1");
  // Layer 0: one head has an effect. Layer 1: its one entry has none (2/97 is under 3 standard
  // errors).
  EXPECT_EQ(Text("SELECT layer, top_layer, top_head, deposit, abs(max_drop - 32.0/97) < 1e-15, "
                 "top_share, top_ratio IS NULL, deposits IS NULL FROM v_deposits WHERE layer = 0"),
            "0 0 0 1 1 1.0 1 1");
  EXPECT_EQ(Text("SELECT max_drop IS NULL, top_head IS NULL, deposit IS NULL FROM v_deposits "
                 "WHERE layer = 1"),
            "1 1 1");
  EXPECT_EQ(
      Text("SELECT method, hygiene, split, target, deposit IS NULL, deposits, effective_heads "
           "FROM v_deposits WHERE layer IS NULL"),
      "zero raw test head 1 1 1.0");
  EXPECT_EQ(Text("SELECT name, version, total, intact_correct, seconds, result_json IS NULL "
                 "FROM v_analyses"),
            "head_ablation 2 97 42 0.5 1");
}

TEST_P(MatricesTest, AMatrixThatCannotBeEndsTheAttempt) {
  const auto wrong = [](const std::function<void(HeadAblation&)>& spoil) {
    HeadAblation matrix = Matrix();
    spoil(matrix);
    return matrix;
  };
  const std::vector<HeadAblation> bad = {
      wrong([](auto& m) { m.entries.pop_back(); }),
      wrong([](auto& m) { m.entries.clear(); }),
      wrong([](auto& m) { m.layers = 0; }),
      wrong([](auto& m) { m.intact_correct = 98; }),
      wrong([](auto& m) { m.total = 0; }),
      wrong([](auto& m) { m.chance = 0; }),
      wrong([](auto& m) { m.chance = 1.5; }),
      wrong([](auto& m) { m.intact_nll = std::nan(""); }),
      wrong([](auto& m) { m.entries[0]->lost += 1; }),
      wrong([](auto& m) { m.entries[0]->correct = 98; }),
      wrong([](auto& m) { m.entries[1]->gained = m.entries[1]->lost = 56; }),
      wrong([](auto& m) { m.entries[2]->nll = -1; }),
      wrong([](auto& m) { m.entries[2]->nll_standard_error = std::nan(""); }),
  };
  for (std::size_t i = 0; i < bad.size(); ++i) {
    SCOPED_TRACE(i);
    Submit(absl::StrCat("t", i), {Cell(0, absl::StrCat("k", i))});
    Attempt attempt = Assign(slice_.ready.front().job_id);
    Train(attempt, 0, 3);
    const EventStored refused = Event(attempt.Next(bad[i]));
    EXPECT_EQ(refused.status, EventStored::kSuperseded);
    ASSERT_TRUE(refused.change.has_value());
    EXPECT_EQ(refused.change->outcome, Outcome::kFailed);
    EXPECT_THAT(Text("SELECT error FROM attempts ORDER BY attempt_id DESC LIMIT 1"),
                HasSubstr("head ablation"));
  }
  EXPECT_EQ(Text("SELECT count(*) FROM analyses"), "0");
}

TEST_P(MatricesTest, AResultThatIsNotJsonEndsTheAttempt) {
  const std::vector<AnalysisResult> bad = {
      {.name = "probe", .version = 1, .parameters_json = "{}", .result_json = "{"},
      {.name = "probe", .version = 1, .parameters_json = "x", .result_json = "{}"},
      {.name = "", .version = 1, .parameters_json = "{}", .result_json = "{}"},
      // Nested deeper than the views can read.
      {.name = "probe",
       .version = 1,
       .parameters_json = "{}",
       .result_json = std::string(5000, '[') + std::string(5000, ']')},
  };
  for (std::size_t i = 0; i < bad.size(); ++i) {
    SCOPED_TRACE(i);
    Submit(absl::StrCat("t", i), {Cell(0, absl::StrCat("k", i))});
    Attempt attempt = Assign(slice_.ready.front().job_id);
    Train(attempt, 0, 3);
    EXPECT_EQ(Event(attempt.Next(bad[i])).change->outcome, Outcome::kFailed);
  }
  EXPECT_EQ(Text("SELECT * FROM v_analyses"), "");
}

}  // namespace
}  // namespace pelab::store
