// Properties of every data set, for any task, definition and split: labels are equally frequent in
// both parts, the parts share no sequence (and no cell, if cells are held out), and examples do not
// depend on the number of examples.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/chi_square.h"
#include "tests/unit/worker/trainer/jobs_fixture.h"
#include "tests/unit/worker/trainer/rows_fixture.h"
#include "worker/trainer/protocol/error.h"
#include "worker/trainer/task/dataset.h"

namespace pelab::trainer {
namespace {

using Int = std::int64_t;
using Cell = std::pair<Int, Int>;  // a label and a position of the first trigger

constexpr Int kTrain = 12000, kTest = 6000;

struct Case {
  std::string task, definition, split;
};
void PrintTo(const Case& value, std::ostream* out) {
  *out << value.task << " " << value.definition << " " << value.split;
}

Dataset Make(const Case& value, catalog::Values set = {}) {
  set.emplace("task.split", value.split);
  set.emplace("task.train_examples", kTrain);
  set.emplace("task.test_examples", kTest);
  set.emplace("task.length", Int{32});
  set.emplace("task.vocabulary", Int{60});
  set.emplace("model.max_len", Int{32});
  return MakeDataset(SmallJob(value.definition, "nope", value.task, set));
}

// The position of the first trigger, if the label fits only one position: chance triggers may leave
// several.
std::optional<Int> PlaceOf(const Dataset& data, const Row& row, Int label) {
  const Int distance = label - data.label_min + 1 + (data.label_min == 2 ? 1 : 0);
  std::optional<Int> found;
  for (Int place = 0; place + distance < static_cast<Int>(row.size()); ++place) {
    if (row[place] != data.triggers[0] || row[place + distance] != data.triggers[1]) continue;
    if (found) return std::nullopt;
    found = place;
  }
  return found;
}

std::map<Cell, Int> Cells(const Dataset& data, Int begin, Int end) {
  std::map<Cell, Int> cells;
  for (Int i = begin; i < end; ++i) {
    const auto place = PlaceOf(data, RowOf(data, i), data.labels[i]);
    if (place) ++cells[{data.labels[i], *place}];
  }
  return cells;
}

class DataProperty : public testing::TestWithParam<Case> {};

TEST_P(DataProperty, LabelsAreEquallyFrequentInBothParts) {
  const Dataset data = Make(GetParam());
  for (const auto& [begin, end] : {std::pair<Int, Int>{0, kTrain}, {kTrain, kTrain + kTest}}) {
    std::map<Int, Int> labels;
    for (Int i = begin; i < end; ++i) {
      ASSERT_GE(data.labels[i], data.label_min);
      ++labels[data.labels[i]];
    }
    ExpectUniform(labels, data.label_count, end - begin);
  }
}

TEST_P(DataProperty, PartsShareNoSequenceUnlessTheSplitIsRandom) {
  // A small set of possible sequences, so that a split that did not check would share some.
  const bool counting = GetParam().task == "counting";
  catalog::Values small = {{"task.length", Int{counting ? 5 : 8}},
                           {"task.vocabulary", Int{12}},
                           {"task.train_examples", Int{400}},
                           {"task.test_examples", Int{100}},
                           {"task.triggers", Int{3}},
                           {"task.max_count", Int{3}}};
  if (!counting && GetParam().definition == "clean") {
    small["task.length"] = Int{5};
    small["task.max_distance"] = Int{3};
  }
  if (!counting && GetParam().definition == "published") {
    small["task.length"] = Int{10};
    small["task.truncate"] = Int{10};
    small["task.max_segment"] = Int{2};
    small["task.max_gap"] = Int{3};
  }
  const Dataset data = Make(GetParam(), small);
  std::set<Row> train;
  for (Int i = 0; i < 400; ++i) train.insert(RowOf(data, i));
  Int shared = 0;
  for (Int i = 400; i < data.size(); ++i) shared += train.count(RowOf(data, i));
  const bool drawn_apart = GetParam().definition == "published" && !counting;  // never repeats
  if (GetParam().split == "random" && !drawn_apart) {
    EXPECT_GT(shared, 0) << "this world is too large to tell";
  } else {
    EXPECT_EQ(shared, 0);
  }
}

TEST_P(DataProperty, MoreExamplesLeaveTheFirstAsTheyAre) {
  if (GetParam().split == "random") return;  // one permutation of all
  const Dataset data = Make(GetParam());
  const Dataset more_tests = Make(GetParam(), {{"task.test_examples", Int{kTest + 500}}});
  const Dataset more_training = Make(GetParam(), {{"task.train_examples", Int{kTrain + 500}}});
  for (Int i = 0; i < data.size(); ++i) {
    ASSERT_EQ(RowOf(more_tests, i), RowOf(data, i)) << i;
    ASSERT_EQ(more_tests.labels[i], data.labels[i]) << i;
  }
  for (Int i = 0; i < kTrain; ++i) {
    ASSERT_EQ(RowOf(more_training, i), RowOf(data, i)) << i;
    ASSERT_EQ(more_training.labels[i], data.labels[i]) << i;
  }
}

TEST_P(DataProperty, IsTheSameFromEveryThread) {
  const std::string reference = DatasetSha256(Make(GetParam()));
  std::vector<std::string> found(2);
  std::vector<std::thread> threads;
  for (auto& slot : found) {
    threads.emplace_back([&slot] { slot = DatasetSha256(Make(GetParam())); });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(found, (std::vector<std::string>{reference, reference}));
  EXPECT_NE(DatasetSha256(Make(GetParam(), {{"task.data_seed", Int{77}}})), reference);
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const char* definition : {"clean", "published"}) {
    for (const char* split : {"disjoint", "random", "held_out_cells", "held_out_starts"}) {
      cases.push_back({"distance", definition, split});
    }
    cases.push_back({"counting", definition, "disjoint"});
    cases.push_back({"counting", definition, "random"});
  }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Every, DataProperty, testing::ValuesIn(Cases()),
                         [](const testing::TestParamInfo<Case>& info) {
                           return info.param.task + "_" + info.param.definition + "_" +
                                  info.param.split;
                         });

class HeldOutCells : public testing::TestWithParam<std::string> {
 protected:
  static Dataset Make(double fraction, Int data_seed = 3) {
    return trainer::Make({"distance", GetParam(), "held_out_cells"},
                         {{"task.held_out_fraction", fraction}, {"task.data_seed", data_seed}});
  }
  // For T 32: starts 0 … 14 of 17 distances, or left lengths 1 … 6 of 17 gaps.
  static Int Places() { return GetParam() == "clean" ? 15 : 6; }
};

TEST_P(HeldOutCells, EachDistanceKeepsItsShareOfPlacesForTheTestSet) {
  for (const auto& [fraction, held_out] : std::map<double, Int>{
           {0.3, GetParam() == "clean" ? 5 : 2}, {0.001, 1}, {0.999, Places() - 1}}) {
    SCOPED_TRACE(fraction);
    const Dataset data = Make(fraction);
    const auto train = Cells(data, 0, kTrain), test = Cells(data, kTrain, data.size());
    std::map<Int, Int> train_places, test_places;
    for (const auto& [cell, count] : train) {
      EXPECT_EQ(test.count(cell), 0u) << "label " << cell.first << " place " << cell.second;
      ++train_places[cell.first];
    }
    for (const auto& [cell, count] : test) ++test_places[cell.first];
    for (Int label = data.label_min; label < data.label_min + data.label_count; ++label) {
      EXPECT_EQ(train_places[label], Places() - held_out) << label;
      EXPECT_EQ(test_places[label], held_out) << label;
    }
  }
}

TEST_P(HeldOutCells, EveryCellOfAPartIsAsLikely) {
  if (GetParam() != "clean") return;  // elsewhere chance triggers hide the cell of some examples
  const Dataset data = Make(0.3);
  for (const auto& [begin, end] : {std::pair<Int, Int>{0, kTrain}, {kTrain, data.size()}}) {
    std::map<Int, Int> counts;
    for (const auto& [cell, count] : Cells(data, begin, end)) {
      counts[cell.first * 1000 + cell.second] = count;
    }
    ExpectUniform(counts, data.label_count * (begin == 0 ? 10 : 5), end - begin);
  }
}

TEST_P(HeldOutCells, AreChosenByTheDataSeedAndDifferBetweenDistances) {
  const auto held_out = [](Int data_seed) {
    const Dataset data = Make(0.3, data_seed);
    std::map<Int, std::set<Int>> places;
    for (const auto& [cell, count] : Cells(data, kTrain, data.size())) {
      places[cell.first].insert(cell.second);
    }
    return places;
  };
  const auto mine = held_out(3);
  EXPECT_EQ(held_out(3), mine);
  EXPECT_NE(held_out(4), mine);
  std::set<std::set<Int>> different;
  for (const auto& [label, places] : mine) different.insert(places);
  EXPECT_GT(different.size(), 3u);
}

TEST_P(HeldOutCells, HeldOutStartsAreThoseOfAllDistances) {
  const auto starts = [](Int data_seed) {
    const Dataset data =
        trainer::Make({"distance", GetParam(), "held_out_starts"}, {{"task.data_seed", data_seed}});
    std::map<Int, std::set<Int>> of_train, of_test;  // by label
    for (const auto& [cell, count] : Cells(data, 0, kTrain)) {
      of_train[cell.first].insert(cell.second);
    }
    for (const auto& [cell, count] : Cells(data, kTrain, data.size())) {
      of_test[cell.first].insert(cell.second);
    }
    const std::set<Int> trained = of_train.begin()->second, tested = of_test.begin()->second;
    for (const auto& [label, places] : of_train) EXPECT_EQ(places, trained) << label;
    for (const auto& [label, places] : of_test) EXPECT_EQ(places, tested) << label;
    std::set<Int> all = trained;
    all.insert(tested.begin(), tested.end());
    EXPECT_EQ(static_cast<Int>(trained.size() + tested.size()), Places()) << "none is in both";
    EXPECT_EQ(static_cast<Int>(all.size()), Places());
    return tested;
  };
  EXPECT_EQ(starts(3).size(), GetParam() == "clean" ? 5u : 2u);
  EXPECT_NE(starts(3), starts(5));
}

INSTANTIATE_TEST_SUITE_P(Every, HeldOutCells, testing::Values("clean", "published"),
                         [](const auto& info) { return info.param; });

TEST(HeldOutCellsOf, WhatHasNoneIsRefused) {
  const auto refusal = [](const std::string& task, catalog::Values set,
                          const std::string& split = "held_out_cells") -> std::string {
    set["task.split"] = split;
    try {
      MakeDataset(SmallJob("clean", "nope", task, set));
    } catch (const TrainerError& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kBadSpec);
      return error.what();
    }
    return "nothing was thrown";
  };
  EXPECT_THAT(refusal("counting", {}), testing::HasSubstr("allowed: disjoint, random"));
  EXPECT_THAT(refusal("counting", {}, "held_out_starts"),
              testing::HasSubstr("split held_out_starts: counting has no start places"));
  EXPECT_THAT(refusal("distance", {{"task.max_distance", Int{15}}}),
              testing::HasSubstr("at least 2 are needed"));
}

TEST(ChiSquare, QuantilesAreThoseOfTheTables) {
  // 0.975 and 0.025 quantiles, as printed in tables; z = 1.959964.
  EXPECT_NEAR(ChiSquareQuantile(10, 1.959964), 20.483, 0.05);
  EXPECT_NEAR(ChiSquareQuantile(100, 1.959964), 129.561, 0.05);
  EXPECT_NEAR(ChiSquareQuantile(100, -1.959964), 74.222, 0.05);
  EXPECT_DOUBLE_EQ(ChiSquareOfEqualShares({{1, 15}, {2, 5}}, 4, 40), 2.5 + 2.5 + 20);
}

}  // namespace
}  // namespace pelab::trainer
