#include "core/experiment/chance.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "core/experiment/canonical_json.h"
#include "core/experiment/configuration.h"

namespace pelab::experiment {
namespace {

catalog::Values With(const char* field, std::int64_t value) {
  return {{field, catalog::Value(value)}};
}

// Logarithms by hand: ln 70, ln 10, ln 574.
TEST(ChanceTest, TheLossOfGuessingIsTheLogarithmOfTheReadOutsWidth) {
  const Job clean = MakeJob("clean", "rope", "distance", 0, With("task.max_distance", 70));
  EXPECT_EQ(ReadOutClasses(clean), 70);
  EXPECT_DOUBLE_EQ(ChanceLoss(clean), 4.248495242049359);
  const Job counting = MakeJob("clean", "nope", "counting", 3, With("task.max_count", 9));
  EXPECT_EQ(ReadOutClasses(counting), 10) << "none to nine";
  EXPECT_DOUBLE_EQ(ChanceLoss(counting), 2.302585092994046);
}

TEST(ChanceTest, APublishedReadOutHasTheWholeVocabulary) {
  Job job = MakeJob("published", "rope", "distance", 0, With("task.vocabulary", 574));
  ASSERT_EQ(job.Choice("task.label_space"), "vocabulary");
  EXPECT_EQ(ReadOutClasses(job), 574);
  EXPECT_DOUBLE_EQ(ChanceLoss(job), 6.352629396319567);
  job = MakeJob("published", "rope", "distance", 0,
                {{"task.label_space", catalog::Value(std::string("exact"))},
                 {"task.max_gap", catalog::Value(std::int64_t{50})}});
  EXPECT_EQ(ReadOutClasses(job), 50);
}

TEST(ChanceTest, DivergenceBeginsATenthAboveChance) {
  const Job job = MakeJob("clean", "rope", "distance", 42, With("task.max_distance", 70));
  EXPECT_NEAR(DivergenceLoss(job), 4.673344766254295, 1e-12);
  const std::string shared = TemplateOf(ToCanonicalJson(job), 42);
  EXPECT_EQ(DivergenceLossOf(shared), DivergenceLoss(job));
  EXPECT_EQ(DivergenceLossOf("{}"), std::nullopt);
  EXPECT_EQ(DivergenceLossOf("no spec"), std::nullopt);
}

}  // namespace
}  // namespace pelab::experiment
