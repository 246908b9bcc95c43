// Bayes' accuracy against that of all sequences of small sizes. tests/golden/ceilings.py computes
// it in Python at the paper's size.
#include "core/experiment/ceiling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "core/catalog/catalog.h"

namespace pelab::experiment {
namespace {

catalog::Value Number(std::int64_t number) { return catalog::Value(number); }

struct Size {
  std::int64_t words, segment, gap, cut;
};

Job Published(const Size& size) {
  return MakeJob("published", "rope", "distance", 0,
                 {{"task.vocabulary", Number(catalog::kFirstWord + size.words)},
                  {"task.length", Number(24)},
                  {"task.max_segment", Number(size.segment)},
                  {"task.max_gap", Number(size.gap)},
                  {"task.truncate", Number(size.cut)}});
}

using Words = std::vector<std::int64_t>;

// Every way to draw `count` different words of `words`.
void Extend(std::int64_t words, std::int64_t count, const Words& so_far, std::vector<Words>* all) {
  if (count == 0) return all->push_back(so_far);
  for (std::int64_t word = 0; word < words; ++word) {
    if (std::find(so_far.begin(), so_far.end(), word) != so_far.end()) continue;
    Words longer = so_far;
    longer.push_back(word);
    Extend(words, count - 1, longer, all);
  }
}

// Every segment of 1 to `most` words, with its probability.
std::vector<std::pair<Words, double>> Segments(std::int64_t words, std::int64_t most) {
  std::vector<std::pair<Words, double>> all;
  for (std::int64_t count = 1; count <= most; ++count) {
    std::vector<Words> of_count;
    Extend(words, count, {}, &of_count);
    const double each = 1.0 / static_cast<double>(most) / static_cast<double>(of_count.size());
    for (Words& segment : of_count) all.emplace_back(std::move(segment), each);
  }
  return all;
}

double OfAllSequences(const Size& size) {
  std::map<Words, std::map<std::size_t, double>> joint;  // by sequence and gap
  for (const auto& [left, of_left] : Segments(size.words, size.segment)) {
    for (const auto& [gap, of_gap] : Segments(size.words, size.gap)) {
      for (const auto& [right, of_right] : Segments(size.words, size.segment)) {
        Words sequence = left;
        sequence.push_back(0);
        sequence.insert(sequence.end(), gap.begin(), gap.end());
        sequence.push_back(1);
        sequence.insert(sequence.end(), right.begin(), right.end());
        sequence.resize(std::min(sequence.size(), static_cast<std::size_t>(size.cut)));
        joint[sequence][gap.size()] += of_left * of_gap * of_right;
      }
    }
  }
  double best = 0;
  for (const auto& [sequence, gaps] : joint) {
    double largest = 0;
    for (const auto& [gap, probability] : gaps) largest = std::max(largest, probability);
    best += largest;
  }
  return best;
}

TEST(CeilingTest, IsThatOfAllSequencesOfSmallSizes) {
  for (const Size& size : {Size{4, 2, 3, 24}, Size{4, 2, 3, 7}, Size{3, 3, 2, 8}, Size{5, 1, 3, 6},
                           Size{2, 2, 2, 6}}) {
    const double exact = OfAllSequences(size);
    EXPECT_LT(exact, 0.97) << "an easy size shows nothing";
    EXPECT_NEAR(*BestAccuracy(Published(size)), exact, 0.008)
        << size.words << " " << size.segment << " " << size.gap << " " << size.cut;
  }
}

TEST(CeilingTest, AtThePapersSize) {
  EXPECT_NEAR(*BestAccuracy(MakeJob("published", "rope", "distance", 0)), 0.97502, 0.0015);
}

// The likelihoods are too small for a double: some segments have all 1,000 words.
TEST(CeilingTest, OfLongSegments) {
  const double some_ambiguous = *BestAccuracy(Published({1000, 1000, 900, 4000}));
  EXPECT_GT(some_ambiguous, 0.99);
  EXPECT_LT(some_ambiguous, 1);
}

TEST(CeilingTest, OfAVocabularyInWhichTriggersRarelyRecur) {
  const double rarely = *BestAccuracy(Published({50'000, 12, 6, 24}));
  EXPECT_GT(rarely, 0.9995);
  EXPECT_LT(rarely, 1);
}

TEST(CeilingTest, IsOneWhereTheTokensTell) {
  EXPECT_EQ(BestAccuracy(MakeJob("clean", "rope", "distance", 0)), 1.0);
  EXPECT_EQ(BestAccuracy(MakeJob("published", "rope", "counting", 0)), 1.0);
}

}  // namespace
}  // namespace pelab::experiment
