// The meaning of valid documents.
#include "core/experiment/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "core/experiment/analysis.h"
#include "core/experiment/canonical_json.h"
#include "core/experiment/cell_maker.h"

namespace pelab::experiment {
namespace {

using testing::ElementsAre;

Sweep Parsed(const std::string& document, const std::vector<Override>& overrides = {}) {
  SweepResult result = ParseSweep(document, overrides);
  for (const Violation& violation : result.violations)
    ADD_FAILURE() << Format(violation, "sweep.yaml");
  return result.sweep ? *result.sweep : Sweep();
}

std::vector<Cell> Cells(const Sweep& sweep) {
  std::vector<Cell> cells;
  for (std::uint64_t i = 0; i < sweep.cells(); ++i) {
    if (auto cell = sweep.At(i)) cells.push_back(std::move(*cell));
  }
  return cells;
}

// For example "rope(base=500) distance 3".
std::vector<std::string> Labels(const Sweep& sweep) {
  std::vector<std::string> labels;
  for (const Cell& cell : Cells(sweep)) {
    labels.push_back(cell.pe_label + " " + cell.job.task + " " + std::to_string(cell.job.seed));
  }
  return labels;
}

TEST(Sweep, ProductWithSeedsFastest) {
  const Sweep sweep = Parsed("{name: a, pe: [nope, rope], task: [distance, counting], seed: 0..1}");
  EXPECT_EQ(sweep.cells(), 8u);
  EXPECT_THAT(Labels(sweep), ElementsAre("nope distance 0", "nope distance 1", "nope counting 0",
                                         "nope counting 1", "rope distance 0", "rope distance 1",
                                         "rope counting 0", "rope counting 1"));
  EXPECT_FALSE(sweep.At(8).has_value());
}

TEST(Sweep, AnExtensionKeepsEveryOrdinalAndAddsItsSeedsBehind) {
  const Sweep sweep = Parsed(
      "{name: a, pe: [nope, rope], task: distance, seed: 0..1, exclude: [{pe: rope, seed: [1, "
      "7]}]}");
  const Extension once = Extend(sweep, "1..2,7");
  EXPECT_EQ(once.problem, "");
  EXPECT_EQ(once.seeds, "2,7");
  ASSERT_TRUE(once.sweep.has_value());
  EXPECT_EQ(once.sweep->cells(), 8u);
  const Extension twice = Extend(*once.sweep, "0..3");
  EXPECT_EQ(twice.seeds, "3");
  ASSERT_TRUE(twice.sweep.has_value());
  EXPECT_THAT(
      Labels(*twice.sweep),
      ElementsAre("nope distance 0", "nope distance 1", "rope distance 0", "nope distance 2",
                  "nope distance 7", "rope distance 2", "nope distance 3", "rope distance 3"));
  for (std::uint64_t i = 0; i < sweep.cells(); ++i) {
    const auto before = sweep.At(i);
    const auto now = twice.sweep->At(i);
    EXPECT_EQ(now ? now->key : "excluded", before ? before->key : "excluded");
  }
  const Extension nothing = Extend(*twice.sweep, "0..3,7");
  EXPECT_EQ(nothing.seeds, "");
  EXPECT_EQ(nothing.sweep->cells(), twice.sweep->cells());
}

TEST(Sweep, SeedsCanBeAddedToSomeCombinationsAlone) {
  const Sweep sweep = Parsed("{name: a, pe: [nope, rope, alibi], task: distance, seed: none}");
  EXPECT_EQ(sweep.cells(), 0u);
  EXPECT_FALSE(sweep.At(0).has_value());
  const Extension some = ExtendSome(sweep, "3..4", {0, 2});
  EXPECT_EQ(some.seeds, "3..4 of 0,2");
  ASSERT_TRUE(some.sweep.has_value()) << some.problem;
  EXPECT_THAT(Labels(*some.sweep), ElementsAre("nope distance 3", "nope distance 4",
                                               "alibi distance 3", "alibi distance 4"));
  const Extension more = ExtendSome(*some.sweep, "5", {1, 2});
  EXPECT_EQ(more.seeds, "5 of 1..2");
  // A seed that some combinations have is new for all of them.
  const Extension all = Extend(*more.sweep, "3");
  EXPECT_EQ(all.seeds, "3");
  EXPECT_THAT(Labels(*all.sweep),
              ElementsAre("nope distance 3", "nope distance 4", "alibi distance 3",
                          "alibi distance 4", "rope distance 5", "alibi distance 5",
                          "nope distance 3", "rope distance 3", "alibi distance 3"));
  EXPECT_EQ(ExtendSome(*all.sweep, "3", {1}).seeds, "") << "all combinations have it";
  CellMaker cells(*all.sweep);
  std::optional<Sweep> again = sweep;
  for (const std::string& seeds : {some.seeds, more.seeds, all.seeds}) {
    again = ExtendAgain(*again, seeds).sweep;
    ASSERT_TRUE(again.has_value()) << seeds;
  }
  for (std::uint64_t i = 0; i < all.sweep->cells(); ++i) {
    EXPECT_EQ(again->At(i)->key, all.sweep->At(i)->key);
    EXPECT_EQ(cells.At(i)->key, all.sweep->At(i)->key);
  }
}

TEST(Sweep, CombinationsThatASweepLacksAreRefused) {
  const Sweep sweep = Parsed("{name: a, pe: [nope, rope], task: distance, seed: none}");
  EXPECT_THAT(ExtendSome(sweep, "3", {2}).problem, testing::HasSubstr("combination 2"));
  EXPECT_FALSE(ExtendSome(sweep, "3", {}).sweep.has_value());
  for (const char* bad : {"3 of ", "3 of x", " of 0", "3 of 0 of 1", "3 of 2"}) {
    EXPECT_FALSE(ExtendAgain(sweep, bad).sweep.has_value()) << bad;
  }
}

TEST(Sweep, ASweepWithoutSeedsIsCheckedLikeAnyOther) {
  const SweepResult result = ParseSweep(
      "{name: a, pe: rope, task: distance, seed: none, "
      "model: {heads: 7}}");
  EXPECT_FALSE(result.sweep.has_value());
  EXPECT_FALSE(ParseSweep("{name: a, pe: rope, task: distance, seed: [none]}").sweep.has_value());
  EXPECT_FALSE(
      ParseSweep("{name: a, pe: rope, task: distance, exclude: [{seed: none}]}").sweep.has_value());
}

TEST(Sweep, AnExtensionIsCheckedBeforeItIsMade) {
  const Sweep sweep = Parsed("{name: a, pe: [nope, rope], task: distance, seed: 0..1}");
  for (const char* bad : {"", "5..x", "5,", "9..5", "-1"}) {
    const Extension refused = Extend(sweep, bad);
    EXPECT_FALSE(refused.sweep.has_value()) << bad;
    EXPECT_THAT(refused.problem, testing::HasSubstr("allowed: numbers and ranges")) << bad;
  }
  // The problem is a message that can be sent, whatever it is about.
  EXPECT_THAT(Extend(sweep, "5,\xff\xc3").problem, testing::HasSubstr("seeds \"??\": not a seed"));
  EXPECT_LT(Extend(sweep, std::string(100'000, 'x')).problem.size(), 300U);
  EXPECT_TRUE(Extend(sweep, "2..499999").sweep.has_value());
  EXPECT_THAT(Extend(sweep, "2..500000").problem, testing::HasSubstr("at most 1000000"));
  EXPECT_FALSE(Extend(sweep, "0..9007199254740991").sweep.has_value());
}

TEST(Sweep, ScalarsAndDefaults) {
  const Sweep sweep = Parsed("name: a\npe: rope\ntask: distance\n");
  EXPECT_EQ(sweep.protocol(), "clean");
  ASSERT_EQ(sweep.analyses().size(), 1u);
  EXPECT_EQ(sweep.analyses()[0].name, "head_ablation");
  EXPECT_EQ(sweep.resources().device, "any");
  const std::vector<Cell> cells = Cells(sweep);
  ASSERT_EQ(cells.size(), 1u);
  EXPECT_EQ(cells[0].job.seed, 0);
  EXPECT_EQ(cells[0].pe_label, "rope");
  EXPECT_EQ(cells[0].protocol_label, "clean");
  EXPECT_EQ(cells[0].canonical_json, ToCanonicalJson(MakeJob("clean", "rope", "distance", 0)));
  // sha256sum of the documented example.
  EXPECT_EQ(cells[0].key, "22f4fb5620406c1e74e8d6ffa69d224db85edbd203b5cc36aa4f23b8c72d0d13");
}

TEST(Sweep, JsonIsTheSameDocument) {
  const auto yaml = Labels(
      Parsed("name: a\npe: [nope, {name: rope, base: 500}]\ntask: distance\nseed: [3, 7..8]\n"));
  const auto json = Labels(Parsed(R"({"name": "a", "pe": ["nope", {"name": "rope", "base": 500}],
                                      "task": "distance", "seed": [3, "7..8"]})"));
  EXPECT_EQ(yaml, json);
  EXPECT_THAT(yaml, ElementsAre("nope distance 3", "nope distance 7", "nope distance 8",
                                "rope(base=500) distance 3", "rope(base=500) distance 7",
                                "rope(base=500) distance 8"));
}

TEST(Sweep, ItemsAndSectionsSetFields) {
  const Sweep sweep = Parsed(R"(
name: a
protocol: published
pe: {name: absolute, form: learned, init_std: 0.02}
task: {name: counting, length: 64}
seed: 5
model: {layers: 2, dropout_sites: [ffn, attention], mask: causal}
train: {lr: 1e-3}
)");
  const std::vector<Cell> cells = Cells(sweep);
  ASSERT_EQ(cells.size(), 1u);
  const Job& job = cells[0].job;
  EXPECT_EQ(cells[0].pe_label, "absolute(form=learned,init_std=0.02)");
  EXPECT_EQ(cells[0].protocol_label, "custom");
  EXPECT_EQ(job.Int("task.length"), 64);
  EXPECT_EQ(job.Int("task.content_length"), 60);
  EXPECT_EQ(job.Int("task.data_seed"), 5);
  EXPECT_EQ(job.Int("model.layers"), 2);
  EXPECT_EQ(job.Real("train.lr"), 1e-3);
  EXPECT_EQ(job.values.at("model.dropout_sites"),
            (catalog::Value(std::vector<std::string>{"attention", "ffn"})));
  EXPECT_EQ(sweep.analyses()[0].parameters.at("head_ablation.hygiene"),
            catalog::Value(std::string("authors")));
}

TEST(Sweep, ASetIsOneValueAndAListOfSetsSeveral) {
  EXPECT_THAT(
      Labels(Parsed("{name: a, pe: [{name: partial_rope, heads: [1, 2, 3]}, {name: partial_rope, "
                    "select: list, head_list: [5, 0]}, {name: partial_rope, select: list, "
                    "head_list: [[7], [9, 8]]}], task: distance}")),
      ElementsAre("partial_rope distance 0", "partial_rope(heads=2) distance 0",
                  "partial_rope(heads=3) distance 0",
                  "partial_rope(select=list,head_list=[0, 5]) distance 0",
                  "partial_rope(select=list,head_list=[7]) distance 0",
                  "partial_rope(select=list,head_list=[8, 9]) distance 0"));
  EXPECT_THAT(Labels(Parsed("{name: a, pe: {name: partial_rope, select: list}, task: distance, "
                            "axes: {pe.head_list: [[0], [1, 2]]}}")),
              ElementsAre("partial_rope(select=list,head_list=[0]) distance 0",
                          "partial_rope(select=list,head_list=[1, 2]) distance 0"));
  EXPECT_THAT(Labels(Parsed("{name: a, pe: {name: partial_rope, select: list}, task: distance, "
                            "axes: {pe.head_list: [[0], [1, 2]]}, "
                            "exclude: [{pe.head_list: [1, 2]}]}")),
              ElementsAre("partial_rope(select=list,head_list=[0]) distance 0"));
  EXPECT_THAT(Labels(Parsed("{name: a, pe: partial_rope, task: distance}",
                            {{"pe.select", "list"}, {"pe.head_list", "[3, 1]"}})),
              ElementsAre("partial_rope(select=list,head_list=[1, 3]) distance 0"));
}

TEST(Sweep, ListsInItemsMakeVariants) {
  EXPECT_THAT(
      Labels(Parsed("{name: a, pe: [nope, {name: rope, base: [500, 10000]}], task: distance}")),
      ElementsAre("nope distance 0", "rope(base=500) distance 0", "rope distance 0"));
}

TEST(Sweep, AxesVaryAfterThePes) {
  const Sweep sweep = Parsed(
      "{name: a, pe: [nope, rope], task: distance, axes: {train.lr: [1e-4, 3e-4], model.layers: "
      "[2, 4]}}");
  std::vector<std::string> seen;
  for (const Cell& cell : Cells(sweep)) {
    seen.push_back(cell.job.pe + " " + catalog::NumberToText(cell.job.Real("train.lr")) + " " +
                   std::to_string(cell.job.Int("model.layers")));
  }
  EXPECT_THAT(seen,
              ElementsAre("nope 0.0001 2", "rope 0.0001 2", "nope 0.0003 2", "rope 0.0003 2",
                          "nope 0.0001 4", "rope 0.0001 4", "nope 0.0003 4", "rope 0.0003 4"));
}

TEST(Sweep, AnAxisWithoutMeaningForAJobLeavesItOnce) {
  const Sweep sweep =
      Parsed("{name: a, pe: [nope, rope], task: distance, axes: {pe.base: [500, 10000]}}");
  EXPECT_EQ(sweep.cells(), 4u);
  EXPECT_THAT(Labels(sweep),
              ElementsAre("nope distance 0", "rope(base=500) distance 0", "rope distance 0"));
}

TEST(Sweep, AnAxisMayDecideWhetherAnotherApplies) {
  const Sweep sweep = Parsed(
      "{name: a, pe: relative, task: distance, axes: {pe.form: [t5, table], pe.buckets: [16, "
      "32]}}");
  EXPECT_THAT(Labels(sweep), ElementsAre("relative(buckets=16) distance 0",
                                         "relative(form=table) distance 0", "relative distance 0"));
}

TEST(Sweep, AxisOverSets) {
  const Sweep sweep = Parsed(
      "{name: a, pe: nope, task: distance, axes: {model.dropout_sites: [[], [attention], [output, "
      "ffn]]}}");
  EXPECT_EQ(Cells(sweep).size(), 3u);
  EXPECT_TRUE(Cells(sweep)[1].job.Has("model.dropout_sites", "attention"));
}

TEST(Sweep, ExcludeByAnything) {
  const std::string start = "{name: a, pe: [nope, alibi], task: [distance, counting], seed: 0..2, ";
  EXPECT_EQ(Cells(Parsed(start + "exclude: [{pe: alibi, task: counting}]}")).size(), 9u);
  EXPECT_EQ(Cells(Parsed(start + "exclude: {seed: [1..2]}}")).size(), 4u);
  EXPECT_EQ(
      Cells(Parsed(start + "exclude: [{pe: [nope, alibi], task: distance, seed: 2}]}")).size(),
      10u);
  EXPECT_EQ(
      Cells(Parsed(start +
                   "axes: {train.lr: [1e-4, 2e-4]}, exclude: [{train.lr: 0.0002, pe: nope}]}"))
          .size(),
      18u);
  EXPECT_EQ(Cells(Parsed(start + "exclude: [{train.epochs: 150}]}")).size(), 6u)
      << "defaults count too";
}

TEST(Sweep, ExcludedJobsNeedNotBeValid) {
  EXPECT_EQ(Cells(Parsed("{name: a, pe: [nope, rope], task: distance, model: {d_model: 48}, "
                         "exclude: {pe: rope}}"))
                .size(),
            1u);
}

TEST(Sweep, AnalysesAndResources) {
  const Sweep none = Parsed("{name: a, pe: nope, task: distance, analyses: []}");
  EXPECT_TRUE(none.analyses().empty());
  const Sweep some = Parsed(
      "{name: a, pe: nope, task: distance, analyses: [head_ablation, {name: head_ablation, "
      "max_examples: 512}],"
      " resources: {device: gpu, memory: 8GiB}}");
  ASSERT_EQ(some.analyses().size(), 2u);
  EXPECT_EQ(some.analyses()[1].parameters.at("head_ablation.max_examples"),
            catalog::Value(std::int64_t{512}));
  EXPECT_EQ(some.resources().device, "gpu");
  EXPECT_EQ(some.resources().memory_bytes, std::uint64_t{8} << 30);
}

TEST(Sweep, OverridesWin) {
  const std::string document =
      "{name: a, pe: [nope, {name: rope, base: 500}], task: distance, seed: 0..9, model: {layers: "
      "2}, "
      "axes: {train.lr: [1e-4, 3e-4]}}";
  const Sweep sweep = Parsed(document, {{"model.layers", "4"},
                                        {"seed", "[5, 6..7]"},
                                        {"name", "b"},
                                        {"train.lr", "1"},
                                        {"train.lr", "2e-4"},
                                        {"pe.base", "600"},
                                        {"model.dropout_sites", "[ffn]"},
                                        {"head_ablation.max_examples", "64"}});
  EXPECT_EQ(sweep.name(), "b");
  EXPECT_EQ(sweep.cells(), 6u);
  EXPECT_THAT(Labels(sweep), ElementsAre("nope distance 5", "nope distance 6", "nope distance 7",
                                         "rope(base=600) distance 5", "rope(base=600) distance 6",
                                         "rope(base=600) distance 7"));
  const Job job = Cells(sweep)[0].job;
  EXPECT_EQ(job.Int("model.layers"), 4);
  EXPECT_EQ(job.Real("train.lr"), 2e-4);
  EXPECT_EQ(sweep.analyses()[0].parameters.at("head_ablation.max_examples"),
            catalog::Value(std::int64_t{64}));
  EXPECT_EQ(Cells(Parsed(document, {{"protocol", "published"}}))[0].protocol_label, "published");
}

// For example "published rope(base=500) 0", for each cell.
std::vector<std::string> LabelsByProtocol(const Sweep& sweep) {
  std::vector<std::string> labels;
  for (const Cell& cell : Cells(sweep)) {
    labels.push_back(cell.protocol_label + " " + cell.pe_label + " " +
                     std::to_string(cell.job.seed));
  }
  return labels;
}

TEST(Protocols, AreTheOutermostAxis) {
  const Sweep sweep = Parsed(
      "{name: a, protocol: [clean, published], pe: [rope, {name: relative, form: table}], "
      "task: distance, seed: 0..1, axes: {train.lr: [1e-4, 2e-4]}}");
  EXPECT_EQ(sweep.protocol(), "clean,published");
  EXPECT_EQ(sweep.cells(), 16u);
  const std::vector<Cell> cells = Cells(sweep);
  ASSERT_EQ(cells.size(), 16u);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const char* protocol = i < 8 ? "clean" : "published";
    EXPECT_EQ(cells[i].job.Choice("task.definition"), protocol) << i;
    EXPECT_EQ(cells[i].job.Real("train.lr"), i / 4 % 2 == 0 ? 1e-4 : 2e-4) << i;
  }
  EXPECT_THAT(LabelsByProtocol(Parsed("{name: a, protocol: [published, clean], pe: [rope, {name: "
                                      "relative, form: table}], task: distance, seed: 3}")),
              ElementsAre("published rope 3", "published relative 3", "clean rope 3",
                          "custom relative(form=table) 3"))
      << "a label says what departs from the cell's own protocol";
}

TEST(Protocols, GiveTheJobsOfEachAlone) {
  const std::string rest = ", pe: [rope, mla], task: [distance, counting], seed: 0..1}";
  std::set<std::string> apart;
  for (const char* protocol : {"clean", "published"}) {
    for (const Cell& cell : Cells(Parsed("{name: a, protocol: " + std::string(protocol) + rest))) {
      apart.insert(cell.key);
    }
  }
  std::set<std::string> together;
  for (const Cell& cell : Cells(Parsed("{name: a, protocol: [clean, published]" + rest))) {
    together.insert(cell.key);
  }
  EXPECT_EQ(together, apart);
  EXPECT_EQ(together.size(), 16u);
}

TEST(Protocols, CanBeSetOnTheCommandLine) {
  const std::string document = "{name: a, pe: rope, task: distance}";
  EXPECT_THAT(LabelsByProtocol(Parsed(document, {{"protocol", "published"}})),
              ElementsAre("published rope 0"));
  EXPECT_THAT(LabelsByProtocol(Parsed(document, {{"protocol", "[clean, published]"}})),
              ElementsAre("clean rope 0", "published rope 0"));
  EXPECT_EQ(Parsed("{name: a, protocol: [clean, published], pe: rope, task: distance}",
                   {{"protocol", "published"}})
                .protocol(),
            "published");
}

TEST(Protocols, AnalysesOfAllAreAskedForOnce) {
  const Sweep sweep = Parsed(
      "{name: a, protocol: [clean, published], pe: rope, task: distance, analyses: [head_ablation, "
      "cumulative_ablation, {name: head_ablation, hygiene: clean, target: head, data: test, "
      "method: mean}]}");
  std::vector<std::string> analyses;
  for (const Analysis& analysis : sweep.analyses()) {
    analyses.push_back(analysis.name + CanonicalParameters(analysis));
  }
  EXPECT_THAT(
      analyses,
      ElementsAre(
          R"(head_ablation{"data":"test","hygiene":"clean","max_examples":0,"method":"zero",)"
          R"("target":"head"})",
          R"(head_ablation{"data":"all","hygiene":"authors","max_examples":0,"method":"zero",)"
          R"("target":"authors"})",
          R"(cumulative_ablation{"max_examples":2000,"method":"zero","orders":5,"steps":16})",
          R"(head_ablation{"data":"test","hygiene":"clean","max_examples":0,"method":"mean",)"
          R"("target":"head"})"));
}

TEST(Protocols, CanBeExcluded) {
  EXPECT_THAT(LabelsByProtocol(Parsed(
                  "{name: a, protocol: [clean, published], pe: [xpos, mla], task: distance, "
                  "exclude: [{protocol: published, pe: xpos}, {protocol: [clean], pe: mla}]}")),
              ElementsAre("clean xpos 0", "published mla 0"));
}

// Sets everything in which the two protocols differ for nope.
constexpr const char* kNothingDiffers =
    "protocol: [clean, published]\npe: nope\n"
    "model: {mask: none, key_padding: masked, kv_source: self, readout: mean, final_norm: true}\n";
constexpr const char* kTaskSet =
    "{name: counting, definition: clean, split: random, label_space: exact, scored_classes: all}";

TEST(Protocols, AJobThatBothGiveStandsOnce) {
  const std::string document =
      "name: a\n" + std::string(kNothingDiffers) + "task: " + kTaskSet + "\n";
  EXPECT_EQ(LabelsByProtocol(Parsed(document)).size(), 2u) << "the epochs differ";
  const Sweep sweep = Parsed(document + "train: {epochs: 7}\n");
  EXPECT_EQ(sweep.cells(), 2u);
  EXPECT_TRUE(sweep.At(0));
  EXPECT_FALSE(sweep.At(1));
  // If the first one is excluded by name, the second one stays.
  const Sweep second = Parsed(document + "train: {epochs: 7}\nexclude: {protocol: clean}\n");
  EXPECT_FALSE(second.At(0));
  EXPECT_TRUE(second.At(1));
}

TEST(Protocols, AJobThatAnotherItemGivesAgainIsRefused) {
  // The second item sets exactly the default form of the second protocol.
  const std::string document =
      "name: a\n" + std::string(kNothingDiffers) + "task: " + kTaskSet + "\ntrain: {epochs: 7}\n";
  const std::string items = "[relative, {name: relative, form: table}]";
  const SweepResult result =
      ParseSweep(std::string(document).replace(document.find("pe: nope"), 8, "pe: " + items));
  ASSERT_EQ(result.violations.size(), 1u);
  EXPECT_EQ(result.violations[0].message,
            "pe[0] gives the same job as pe[1] (line 3) under protocol clean; a sweep holds each "
            "job once");
}

TEST(Sweep, AnchorsAndAliases) {
  EXPECT_THAT(Labels(Parsed("name: a\npe: &pes [nope, rope]\ntask: distance\nexclude: [{pe: *pes, "
                            "seed: 1}]\nseed: 0..1")),
              ElementsAre("nope distance 0", "rope distance 0"));
}

TEST(Sweep, KeysDifferForDifferentJobsOnly) {
  std::set<std::string> keys;
  std::string pes;
  for (const catalog::Entry& pe : catalog::Pes()) {
    pes += (pes.empty() ? "" : ", ") + std::string(pe.name);
  }
  const Sweep sweep = Parsed("{name: a, pe: [" + pes +
                             "], task: [distance, counting], seed: 0..9, "
                             "axes: {train.lr: [1e-4, 2e-4]}}");
  for (const Cell& cell : Cells(sweep)) keys.insert(cell.key);
  EXPECT_EQ(keys.size(), sweep.cells());
  const Sweep renamed = Parsed(
      "{name: b, pe: rope, task: distance, seed: 3, resources: {device: cpu}, analyses: []}");
  EXPECT_EQ(keys.count(Cells(renamed)[0].key), 1u)
      << "the name, analyses and resources are not part of a job";
}

TEST(Sweep, ShippedDocumentsAreValid) {
  int documents = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(
           std::string(PELAB_SOURCE_DIR) + "/docs/sweeps")) {
    if (entry.path().extension() != ".yaml") continue;
    SCOPED_TRACE(entry.path());
    std::ifstream file(entry.path());
    std::stringstream text;
    text << file.rdbuf();
    EXPECT_FALSE(Cells(Parsed(text.str())).empty());
    ++documents;
  }
  EXPECT_GE(documents, 1);
}

}  // namespace
}  // namespace pelab::experiment
