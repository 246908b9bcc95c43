// Expected values by hand, and by going through all equally likely sequences. tests/golden/
// ceilings.py holds the rules themselves against generated data.
#include "core/experiment/shortcut.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace pelab::experiment {
namespace {

catalog::Value Whole(std::int64_t number) { return catalog::Value(number); }
catalog::Value Word(const char* word) { return catalog::Value(std::string(word)); }

// The accuracy of the best guess from `seen`, where every pair of seen and label that is given is
// equally likely.
double BestGuess(const std::vector<std::pair<std::int64_t, std::int64_t>>& pairs) {
  std::map<std::int64_t, std::map<std::int64_t, int>> counts;
  for (const auto& [seen, label] : pairs) ++counts[seen][label];
  int right = 0;
  for (const auto& [seen, labels] : counts) {
    int most = 0;
    for (const auto& [label, count] : labels) most = std::max(most, count);
    right += most;
  }
  return static_cast<double>(right) / static_cast<double>(pairs.size());
}

TEST(ShortcutTest, AtThePapersSize) {
  const Shortcut published = BestShortcut(MakeJob("published", "rope", "distance", 0));
  EXPECT_NEAR(published.accuracy, 2350.0 / 43750, 1e-12);
  const Shortcut clean =
      BestShortcut(MakeJob("clean", "rope", "distance", 0, {{"task.max_distance", Whole(70)}}));
  EXPECT_NEAR(clean.accuracy, 127.0 / 4060, 1e-12);
  EXPECT_EQ(clean.rule, "the second trigger's place alone");
  const Shortcut counting =
      BestShortcut(MakeJob("clean", "nope", "counting", 0, {{"task.max_count", Whole(100)}}));
  EXPECT_NEAR(counting.accuracy, (100.0 / 128 + 1) / 101, 1e-12);
}

TEST(ShortcutTest, IsTheBestGuessOfAllSequencesOfSmallSizes) {
  struct Size {
    std::int64_t segment, gap, truncate;
  };
  for (const Size size : {Size{3, 7, 24}, Size{5, 4, 24}, Size{6, 9, 12}, Size{1, 8, 24}}) {
    const Job job = MakeJob("published", "rope", "distance", 0,
                            {{"task.length", Whole(24)},
                             {"task.max_segment", Whole(size.segment)},
                             {"task.max_gap", Whole(size.gap)},
                             {"task.truncate", Whole(size.truncate)}});
    std::vector<std::pair<std::int64_t, std::int64_t>> by_length, by_place;
    for (std::int64_t left = 1; left <= size.segment; ++left) {
      for (std::int64_t right = 1; right <= size.segment; ++right) {
        for (std::int64_t gap = 1; gap <= size.gap; ++gap) {
          by_length.emplace_back(std::min(left + gap + right + 2, size.truncate), gap);
          by_place.emplace_back(left + gap + 1, gap);
        }
      }
    }
    EXPECT_NEAR(BestShortcut(job).accuracy,
                std::max({BestGuess(by_length), BestGuess(by_place), 1.0 / size.gap}), 1e-12)
        << size.segment << " " << size.gap << " " << size.truncate;
  }
  for (const std::int64_t distances : {2, 9, 16, 30}) {
    const Job job = MakeJob("clean", "rope", "distance", 0,
                            {{"task.length", Whole(32)}, {"task.max_distance", Whole(distances)}});
    std::vector<std::pair<std::int64_t, std::int64_t>> by_place;
    for (std::int64_t start = 0; start < 32 - distances; ++start) {
      for (std::int64_t distance = 1; distance <= distances; ++distance) {
        by_place.emplace_back(start + distance, distance);
      }
    }
    EXPECT_NEAR(BestShortcut(job).accuracy, BestGuess(by_place), 1e-12) << distances;
  }
}

TEST(ShortcutTest, CountingKnowsWhichCountsAreScored) {
  for (const char* scored : {"all", "nonzero"}) {
    const Job job = MakeJob("clean", "nope", "counting", 0,
                            {{"task.length", Whole(12)},
                             {"task.max_count", Whole(7)},
                             {"task.scored_classes", Word(scored)}});
    const int least = std::string(scored) == "all" ? 0 : 1;
    std::vector<std::pair<std::int64_t, std::int64_t>> by_place;  // of twelve, `count` have one
    for (int count = least; count <= 7; ++count) {
      for (int place = 0; place < 12; ++place) by_place.emplace_back(place < count ? 1 : 0, count);
    }
    EXPECT_NEAR(BestShortcut(job).accuracy, BestGuess(by_place), 1e-12) << scored;
  }
}

TEST(ShortcutTest, HeldOutCellsAreGuessedBetterAtMostByTheirShare) {
  const catalog::Values size = {{"task.length", Whole(32)}, {"task.max_distance", Whole(12)}};
  catalog::Values held_out = size;
  held_out["task.split"] = Word("held_out_cells");
  held_out["task.held_out_fraction"] = catalog::Value(0.25);
  const double all = BestShortcut(MakeJob("clean", "rope", "distance", 0, size)).accuracy;
  EXPECT_NEAR(BestShortcut(MakeJob("clean", "rope", "distance", 0, held_out)).accuracy, 4 * all,
              1e-12);  // 5 of the 20 starts
  held_out["task.split"] = Word("held_out_starts");
  EXPECT_NEAR(BestShortcut(MakeJob("clean", "rope", "distance", 0, held_out)).accuracy, 4 * all,
              1e-12);
}

}  // namespace
}  // namespace pelab::experiment
