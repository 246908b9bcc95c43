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

TEST_P(MatricesTest, OfTwoVersionsTheViewShowsTheNewer) {
  Submit("a", {Cell(0, "k0")});
  TrainWhole();
  const std::string before = Text("SELECT * FROM v_head_ablation");
  ASSERT_NE(before, "");
  store_->database().connection().exec(
      "INSERT INTO analyses (analysis_id, job_id, name, version, parameters_json, attempt_id, "
      "layers, heads, intact_correct, total, created_at) SELECT 99, job_id, name, version - 1, "
      "parameters_json, attempt_id, layers, heads, intact_correct, total, 1 FROM analyses;"
      "INSERT INTO head_ablation (analysis_id, layer, head, correct) VALUES (99, 0, 0, 7)");
  EXPECT_EQ(Text("SELECT * FROM v_head_ablation"), before);
  EXPECT_EQ(Text("SELECT version FROM v_analyses ORDER BY version"), "1 2");
}

// A matrix with all its entries, in each of which nothing changes.
v1::HeadAblation FullMatrix(int layers, int heads) {
  v1::HeadAblation matrix = Matrix();
  matrix.set_layers(layers);
  matrix.set_heads(heads);
  matrix.clear_missing();
  for (auto* counts : {matrix.mutable_correct(), matrix.mutable_lost(), matrix.mutable_gained()}) {
    counts->Clear();
    counts->Resize(layers * heads, counts == matrix.mutable_correct() ? 42 : 0);
  }
  for (auto* reals : {matrix.mutable_nll(), matrix.mutable_nll_standard_error()}) {
    reals->Clear();
    reals->Resize(layers * heads, 1);
  }
  return matrix;
}

TEST_P(MatricesTest, AMatrixThatCannotBeEndsTheAttempt) {
  const auto wrong = [](const std::function<void(v1::HeadAblation&)>& spoil) {
    v1::HeadAblation matrix = Matrix();
    spoil(matrix);
    return matrix;
  };
  const std::vector<v1::HeadAblation> bad = {
      wrong([](auto& m) { m.mutable_correct()->RemoveLast(); }),
      wrong([](auto& m) { m.mutable_missing()->RemoveLast(); }),
      wrong([](auto& m) { m.clear_nll(); }),
      wrong([](auto& m) { m.set_layers(0); }),
      wrong([](auto& m) { m.set_heads(5000); }),
      FullMatrix(2, 129),
      wrong([](auto& m) { m.set_version(0); }),
      wrong([](auto& m) { m.set_parameters_json("[]"); }),
      wrong([](auto& m) { m.set_intact_correct(98); }),
      wrong([](auto& m) { m.set_total(0); }),
      wrong([](auto& m) { m.set_chance(0); }),
      wrong([](auto& m) { m.set_chance(1.5); }),
      wrong([](auto& m) { m.set_intact_nll(std::nan("")); }),
      wrong([](auto& m) { m.set_lost(0, m.lost(0) + 1); }),
      wrong([](auto& m) { m.set_correct(0, 98); }),
      wrong([](auto& m) {
        m.set_lost(1, 56);
        m.set_gained(1, 56);
      }),
      wrong([](auto& m) { m.set_nll(2, -1); }),
      wrong([](auto& m) { m.set_nll_standard_error(2, std::nan("")); }),
  };
  for (std::size_t i = 0; i < bad.size(); ++i) {
    SCOPED_TRACE(i);
    Submit(absl::StrCat("t", i), {Cell(0, absl::StrCat("k", i))});
    Attempt attempt = Assign(slice_.ready.front().job_id);
    Train(attempt, 0, 3);
    const EventStored refused = Event(attempt.Next(bad[i]));
    EXPECT_EQ(refused.status, EventStored::kSuperseded);
    ASSERT_TRUE(refused.change);
    EXPECT_EQ(refused.change->outcome, Outcome::kFailed);
    EXPECT_THAT(Text("SELECT error FROM attempts ORDER BY attempt_id DESC LIMIT 1"),
                HasSubstr("head ablation"));
  }
  EXPECT_EQ(Text("SELECT count(*) FROM analyses"), "0");
}

TEST_P(MatricesTest, AnAnalysisThatNobodyAskedForEndsTheAttempt) {
  v1::HeadAblation other_version = Matrix();
  other_version.set_version(1);
  const std::vector<std::pair<EventBody, std::string>> bad = {
      {ResultOf("probe", "{}"), "the analysis probe, version 1, parameters {}, which"},
      {ResultOf(std::string(5000, 'x'), "{}"), "the analysis of 5000 bytes, version 1"},
      {other_version, "the analysis head_ablation, version 1"},
      {Matrix(R"({"method":"mean"})"), R"(version 2, parameters {"method":"mean"}, which)"},
  };
  for (std::size_t i = 0; i < bad.size(); ++i) {
    SCOPED_TRACE(i);
    Submit(absl::StrCat("t", i), {Cell(0, absl::StrCat("k", i))});
    Attempt attempt = Assign(slice_.ready.front().job_id);
    Train(attempt, 0, 3);
    const EventStored refused = Event(attempt.Next(bad[i].first));
    ASSERT_TRUE(refused.change);
    EXPECT_EQ(refused.change->outcome, Outcome::kFailed);
    const std::string error = Text("SELECT error FROM attempts ORDER BY attempt_id DESC LIMIT 1");
    EXPECT_THAT(error, HasSubstr(bad[i].second));
    EXPECT_THAT(error, HasSubstr("asked for: head_ablation, version 2, parameters {\"data\":"));
  }
  EXPECT_EQ(Text("SELECT count(*) FROM analyses"), "0");
}

TEST_P(MatricesTest, AResultThatIsNotJsonEndsTheAttempt) {
  std::vector<v1::AnalysisResult> bad = {
      ResultOf("probe", "{"), ResultOf("probe", "{}"), ResultOf("", "{}"),
      // Nested deeper than the views can read.
      ResultOf("probe", std::string(5000, '[') + std::string(5000, ']'))};
  bad[1].set_parameters_json("x");
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
