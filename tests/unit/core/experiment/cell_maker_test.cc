#include "core/experiment/cell_maker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "core/experiment/canonical_json.h"

namespace pelab::experiment {
namespace {

constexpr char kSmall[] = "model: {d_model: 16, d_ff: 16, heads: 2, layers: 2}\n";

Sweep SweepOf(const std::string& document) {
  SweepResult result = ParseSweep(document);
  EXPECT_TRUE(result.sweep) << Format(result.violations.front(), document);
  return *std::move(result.sweep);
}

std::string Text(const std::optional<Cell>& cell) {
  if (!cell) return "none";
  std::string text = std::to_string(cell->ordinal) + " " + std::to_string(cell->combination) + " " +
                     cell->pe_label + " " + cell->protocol_label + " " +
                     std::to_string(cell->job.seed) + " " + cell->key + " " + cell->canonical_json +
                     " " + ToCanonicalJson(cell->job);
  for (const auto& [name, value] : cell->job.values) {
    text += " " + name + "=" + catalog::ToText(value);
  }
  return text;
}

// Expects that the cells made in order, backwards and one at a time are those of the sweep. Returns
// the number of cells.
int ExpectTheSame(const Sweep& sweep) {
  CellMaker forwards(sweep), backwards(sweep);
  int cells = 0;
  for (std::uint64_t i = 0; i <= sweep.cells(); ++i) {
    const std::optional<Cell> expected = sweep.At(i);
    cells += expected ? 1 : 0;
    EXPECT_EQ(Text(forwards.At(i)), Text(expected)) << "cell " << i;
    const std::uint64_t other = sweep.cells() - i;
    EXPECT_EQ(Text(backwards.At(other)), Text(sweep.At(other))) << "cell " << other;
    EXPECT_EQ(Text(CellMaker(sweep).At(i)), Text(expected)) << "cell " << i;
  }
  return cells;
}

TEST(CellMakerTest, EveryPeTaskAndProtocol) {
  std::string pes, causal;
  for (const catalog::Entry& pe : catalog::Pes()) {
    pes += (pes.empty() ? "" : ", ") + std::string(pe.name);
    if (pe.causal_because.empty()) continue;
    causal +=
        (causal.empty() ? "{pe: " : ", {pe: ") + std::string(pe.name) + ", protocol: published}";
  }
  const Sweep sweep = SweepOf("name: a\nprotocol: [clean, published]\npe: [" + pes +
                              "]\ntask: [distance, counting]\nseed: [0, 7, 9007199254740990, "
                              "9007199254740991]\nexclude: [" +
                              causal + "]\n" + std::string(kSmall));
  EXPECT_GE(ExpectTheSame(sweep), 2 * 2 * 4 * 10);
}

TEST(CellMakerTest, PartSeedsThatAreSetAndThoseThatFollow) {
  EXPECT_EQ(ExpectTheSame(SweepOf("name: a\npe: rope\ntask: {name: distance, data_seed: 3}\n"
                                  "seed: 0..5\n" +
                                  std::string(kSmall))),
            6);
  // The same with seeds that are compared.
  ExpectTheSame(
      SweepOf("name: a\npe: [rope, nope]\ntask: distance\n"
              "seed: [0, 1, 9007199254740990, 9007199254740991]\n"
              "axes: {task.data_seed: [0, 1, 5, 9007199254740990, 9007199254740991]}\n" +
              std::string(kSmall)));
}

TEST(CellMakerTest, ExclusionsAndAxesWithoutAMeaning) {
  const Sweep sweep = SweepOf(
      "name: a\nprotocol: [clean, published]\npe: [rope, nope]\n"
      "task: [distance, counting]\nseed: 0..4\n"
      "axes: {pe.base: [500, 10000], train.lr: [1e-4, 3e-4]}\n"
      "exclude: [{pe: rope, seed: 2}, {seed: 3, protocol: clean}, {train.lr: 3e-4, "
      "task: counting}]\n" +
      std::string(kSmall));
  const int cells = ExpectTheSame(sweep);
  EXPECT_GT(cells, 0);
  EXPECT_LT(cells, static_cast<int>(sweep.cells()));
}

TEST(CellMakerTest, ProtocolsThatGiveTheSameJobs) {
  ExpectTheSame(SweepOf(
      "name: a\nprotocol: [clean, published]\npe: nope\ntask: {name: distance, data_seed: 2, "
      "definition: clean, split: disjoint}\nseed: 0..3\n" +
      std::string(kSmall)));
}

// The cells as "rope distance 0", in their order.
std::vector<std::string> Listed(const Sweep& sweep) {
  std::vector<std::string> cells;
  for (std::uint64_t i = 0; i < sweep.cells(); ++i) {
    const auto cell = sweep.At(i);
    if (!cell) continue;
    cells.push_back(cell->pe_label + " " + cell->task_label + " " + std::to_string(cell->job.seed));
  }
  return cells;
}

TEST(CellMakerTest, OrdersOfTheSameCells) {
  const auto sweep_of = [](const std::string& order) {
    return SweepOf("name: a\npe: [rope, nope]\ntask: [distance, counting]\nseed: 3..5\n" + order +
                   std::string(kSmall));
  };
  const std::vector<std::string> seeds_first = {
      "rope distance 3", "rope distance 4", "rope distance 5", "rope counting 3",
      "rope counting 4", "rope counting 5", "nope distance 3", "nope distance 4",
      "nope distance 5", "nope counting 3", "nope counting 4", "nope counting 5"};
  EXPECT_EQ(Listed(sweep_of("")), seeds_first);
  EXPECT_EQ(Listed(sweep_of("order: seeds_first\n")), seeds_first);
  EXPECT_EQ(Listed(sweep_of("order: cells_first\n")),
            (std::vector<std::string>{"rope distance 3", "rope counting 3", "nope distance 3",
                                      "nope counting 3", "rope distance 4", "rope counting 4",
                                      "nope distance 4", "nope counting 4", "rope distance 5",
                                      "rope counting 5", "nope distance 5", "nope counting 5"}));
  const Sweep random = sweep_of("order: random\n");
  std::vector<std::string> mixed = Listed(random);
  EXPECT_EQ(Listed(sweep_of("order: random\n")), mixed) << "the same again";
  EXPECT_NE(mixed, seeds_first);
  std::vector<std::string> all = seeds_first;
  std::sort(mixed.begin(), mixed.end());
  std::sort(all.begin(), all.end());
  EXPECT_EQ(mixed, all) << "each cell once";
  EXPECT_EQ(ExpectTheSame(sweep_of("order: cells_first\n")), 12);
  EXPECT_EQ(ExpectTheSame(random), 12);
  const Extension more = Extend(sweep_of("order: cells_first\n"), "7..8");
  ASSERT_TRUE(more.sweep) << more.problem;
  const std::vector<std::string> extended = Listed(*more.sweep);
  EXPECT_EQ(extended.size(), 20u);
  EXPECT_EQ(extended[12], "rope distance 7") << "the earlier cells keep their places";
  EXPECT_EQ(extended[13], "rope counting 7");
  EXPECT_EQ(extended[19], "nope counting 8");
}

TEST(CellMakerTest, ARandomOrderHasEachCellOnceForEverySize) {
  for (int seeds = 1; seeds <= 70; ++seeds) {
    const std::vector<std::string> cells = Listed(
        SweepOf("name: a\npe: [rope, nope, alibi]\ntask: distance\norder: random\nseed: 1.." +
                std::to_string(seeds) + "\n" + std::string(kSmall)));
    EXPECT_EQ(cells.size(), 3u * seeds);
    EXPECT_EQ(std::set<std::string>(cells.begin(), cells.end()).size(), cells.size()) << seeds;
  }
}

TEST(CellMakerTest, SeedsThatWereAdded) {
  const Sweep sweep =
      SweepOf("name: a\npe: [rope, nope]\ntask: distance\nseed: 0..2\n" + std::string(kSmall));
  const Extension more = Extend(sweep, "5..9");
  ASSERT_TRUE(more.sweep) << more.problem;
  EXPECT_EQ(ExpectTheSame(*more.sweep), 16);
}

}  // namespace
}  // namespace pelab::experiment
