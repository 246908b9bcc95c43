#include "core/claims/binding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "core/base/strings.h"
#include "core/claims/cell_labels.h"
#include "core/claims/metric.h"
#include "tests/unit/core/claims/claims_fixture.h"

namespace pelab::claims {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr char kTwoProtocols[] = R"(
name: t
protocol: [clean, published]
pe: [rope, nope, {name: partial_rope, heads: [1, 2]}]
task: {name: distance, length: 16, vocabulary: 40}
seed: 0..4
model: {d_model: 16, d_ff: 32, heads: 2, layers: 2, max_len: 16}
)";

std::string BindError(const std::string& claims, const std::string& sweep = kTwoProtocols) {
  const Sheet sheet = SheetOf(claims);
  const BindResult result = Bind(sheet, *ParseSweepOf(sheet, sweep).sweep);
  EXPECT_FALSE(result.bound.has_value());
  EXPECT_THAT(result.violations, SizeIs(1));
  return result.violations.empty() ? "" : Format(result.violations.front(), "s.yaml");
}

// The names that messages and tables give to the cells of a sweep whose models differ.
TEST(BindingTest, CellsAreToldApartByTheSettingsInWhichTheyDiffer) {
  const BoundSheet bound = Bound(
      "  - id: r\n    most: {metric: deposit, cell: pe=rope}\n"
      "    each: [protocol, model.layers, model.heads]\n",
      "name: t\nprotocol: [clean, published]\npe: rope\n"
      "task: {name: distance, length: 16, vocabulary: 40}\n"
      "model: {d_model: 16, d_ff: 32, max_len: 16}\n"
      "axes: {model.layers: [2, 3], model.heads: [2, 4]}\n");
  const CellLabels labels(bound.configurations);
  std::set<std::string> all;
  for (std::size_t at = 0; at < bound.configurations.size(); ++at) all.insert(labels.Of(at));
  EXPECT_THAT(all, SizeIs(8));
  EXPECT_THAT(all, Contains("rope distance published model.heads=4 model.layers=3"));
}

TEST(BindingTest, OneClaimForEachProtocolOnItsOwnCells) {
  const BoundSheet bound = Bound(
      "  - id: r\n    above: {metric: test_accuracy, a: pe=rope, b: pe=nope, by: 0.1}\n"
      "    each: protocol\n",
      kTwoProtocols);
  EXPECT_THAT(bound.configurations, SizeIs(8)) << "the sweep's seeds are not read";
  ASSERT_THAT(bound.claims, SizeIs(2));
  EXPECT_EQ(bound.claims[0].id, "r[clean]");
  EXPECT_EQ(bound.claims[1].id, "r[published]");
  for (const BoundClaim& claim : bound.claims) {
    ASSERT_THAT(claim.statistics, SizeIs(1));
    const Statistic& difference = claim.statistics[0];
    ASSERT_THAT(difference, SizeIs(2));
    EXPECT_EQ(bound.configurations[difference[0].configuration].job.pe, "rope");
    EXPECT_EQ(bound.configurations[difference[1].configuration].job.pe, "nope");
    EXPECT_EQ(bound.configurations[difference[0].configuration].protocol_label,
              claim.id == "r[clean]" ? "clean" : "published");
    EXPECT_EQ(difference[0].weight, 1);
    EXPECT_EQ(difference[1].weight, -1);
    ASSERT_THAT(claim.holds, SizeIs(1));
    EXPECT_TRUE(claim.holds[0].above);
    EXPECT_FALSE(claim.fails[0].above);
    EXPECT_EQ(claim.holds[0].limit, 0.1);
    EXPECT_EQ(claim.fails[0].limit, 0.1);
  }
}

TEST(BindingTest, AChainHasAPartForEachStepAndABandTwoSides) {
  const BoundSheet bound = Bound(R"(
  - id: chain
    above: {metric: test_accuracy, chain: [pe=rope, {pe: partial_rope, heads: 2}, pe=nope]}
    where: protocol=clean
  - {id: band, between: {metric: test_accuracy, cell: pe=rope, low: 0.2, high: 0.4},
     where: protocol=clean}
  - {id: near, near: {metric: test_accuracy, a: pe=rope, b: pe=nope, within: 0.1},
     where: protocol=clean}
  - {id: most, most: {metric: deposit, cell: pe=rope}, where: protocol=clean}
  - {id: contrast, contrast: {metric: test_accuracy, of: [{cell: pe=rope, weight: 0.5},
     {cell: pe=nope, weight: -1}], by: 0}, where: protocol=clean}
)",
                                 kTwoProtocols);
  ASSERT_THAT(bound.claims, SizeIs(5));
  EXPECT_THAT(bound.claims[0].statistics, SizeIs(2));
  EXPECT_THAT(bound.claims[0].holds, SizeIs(2));
  EXPECT_THAT(bound.claims[0].fails, SizeIs(2));
  EXPECT_EQ(bound.claims[0].statistics[0][1].configuration,
            bound.claims[0].statistics[1][0].configuration);
  const auto sides = [](const std::vector<Side>& all) {
    std::vector<std::string> texts;
    for (const Side& side : all) {
      texts.push_back(Concat(side.above ? "> " : "< ", std::to_string(side.limit).substr(0, 4)));
    }
    return texts;
  };
  EXPECT_THAT(sides(bound.claims[1].holds), ElementsAre("> 0.20", "< 0.40"));
  EXPECT_THAT(sides(bound.claims[1].fails), ElementsAre("< 0.20", "> 0.40"));
  EXPECT_THAT(sides(bound.claims[2].holds), ElementsAre("> -0.1", "< 0.10"));
  EXPECT_THAT(sides(bound.claims[3].holds), ElementsAre("> 0.50"));
  EXPECT_THAT(sides(bound.claims[3].fails), ElementsAre("< 0.50"));
  EXPECT_EQ(bound.claims[4].statistics[0][0].weight, 0.5);
}

TEST(BindingTest, CellsThatTheSweepCannotMake) {
  EXPECT_THAT(
      BindError("  - {id: a, between: {metric: test_accuracy, cell: pe=mla, low: 0, high: 1},\n"
                "     where: protocol=clean}\n"),
      HasSubstr("s.yaml:4:52: no cell of the sweep meets \"pe=mla\" where protocol=clean"));
  const std::string several = BindError(
      "  - {id: a, between: {metric: test_accuracy, cell: pe=partial_rope, low: 0, high: 1},\n"
      "     each: protocol}\n");
  EXPECT_THAT(several,
              HasSubstr("2 cells of the sweep meet \"pe=partial_rope\" (protocol: clean)"));
  EXPECT_THAT(
      BindError("  - {id: a, between: {metric: test_accuracy, cell: pe=rope, low: 0, high: 1}}\n"),
      HasSubstr("they differ in protocol (clean, published): name one"));
  EXPECT_THAT(several, HasSubstr("they differ in pe.heads (1, 2): name one, here or in where"));
  EXPECT_THAT(
      BindError("  - {id: a, above: {metric: test_accuracy, a: pe=rope, b: pe_label=rope},\n"
                "     where: protocol=clean}\n"),
      HasSubstr("\"pe_label=rope\" is a cell that the claim has already"));
  EXPECT_THAT(
      BindError("  - {id: a, between: {metric: test_accuracy, cell: pe=rope, low: 0, high: 1},\n"
                "     where: task=counting}\n"),
      HasSubstr("s.yaml:5:13: no cell of the sweep meets \"task=counting\""));
  EXPECT_THAT(
      BindError("  - {id: a, between: {metric: test_accuracy, cell: test_accuracy>0.5, low: 0, "
                "high: 1}}\n"),
      HasSubstr("a cell is chosen by fields of its spec, not by results"));
  EXPECT_THAT(
      BindError("  - {id: a, between: {metric: test_accuracy, cell: pee=rope, low: 0, high: "
                "1}}\n"),
      HasSubstr("unknown field \"pee\""));
  EXPECT_THAT(
      BindError("  - {id: a, between: {metric: test_accuracy, cell: pe=rope, low: 0, high: 1},\n"
                "     where: protocol=clean, each: prtocol}\n"),
      HasSubstr("s.yaml:5:35: each: unknown field \"prtocol\""));
}

TEST(BindingTest, MistakenValuesGetThoseThatAreThere) {
  EXPECT_THAT(
      BindError("  - {id: a, between: {metric: test_accuracy, cell: pe=roep, low: 0, high: 1},\n"
                "     where: protocol=clean}\n"),
      HasSubstr("; no cell has pe = roep; did you mean rope? there: nope, partial_rope, rope"));
  EXPECT_THAT(
      BindError("  - {id: a, between: {metric: test_accuracy, cell: pe=rope, low: 0, high: 1},\n"
                "     where: model.layers=7}\n"),
      HasSubstr("; no cell has model.layers = 7; there: 2"));
  // Each value is there, but not together.
  EXPECT_THAT(
      BindError("  - {id: a, between: {metric: test_accuracy, cell: pe=rope pe.heads=2, low: 0, "
                "high: 1},\n     where: protocol=clean}\n"),
      HasSubstr("; it has nope distance clean, nope distance published, partial_rope"));
}

TEST(BindingTest, ALayerThatNoModelHas) {
  const std::string claim =
      "  - {id: a, most: {metric: deposit, cell: pe=rope, layers: [0, 2]}, where: "
      "protocol=clean}\n";
  EXPECT_THAT(BindError(claim), HasSubstr("s.yaml:4:5: layer 2 does not exist: the models of rope "
                                          "have 2, which count from 0"));
  Bound(
      "  - {id: a, most: {metric: deposit, cell: pe=rope, layers: [0, 1]}, where: "
      "protocol=clean}\n",
      kTwoProtocols);
}

TEST(BindingTest, ClaimsAboutHeadsNeedTheirAnalysis) {
  const std::string drop =
      "  - {id: d, above: {metric: max_drop, a: pe=rope, b: pe=nope}, where: protocol=clean}\n";
  const std::string without = Concat(kTwoProtocols, "analyses: []\n");
  const absl::Status lacking = CheckCanBeSettled(Bound(drop, without));
  EXPECT_EQ(lacking.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(lacking.message()), HasSubstr("claim d is about what heads are worth"));
  EXPECT_TRUE(CheckCanBeSettled(Bound(drop, kTwoProtocols)).ok());  // it is the default
  const std::string plain =
      "  - {id: a, above: {metric: test_accuracy, a: pe=rope, b: pe=nope}, where: "
      "protocol=clean}\n";
  EXPECT_TRUE(CheckCanBeSettled(Bound(plain, without)).ok());
}

TEST(BindingTest, AccuracyOnASplitNeedsTheSplitAndItsAnalysis) {
  const auto claim = [](const std::string& split) {
    return Concat("  - {id: s, above: {metric: split_accuracy(", split,
                  "), a: pe=rope, b: pe=nope}, where: protocol=clean}\n");
  };
  EXPECT_THAT(BindError(claim("long")),
              HasSubstr("s.yaml:4:5: distance has no split long; its splits: train, test"));
  const absl::Status lacking = CheckCanBeSettled(Bound(claim("train"), kTwoProtocols));
  EXPECT_THAT(std::string(lacking.message()),
              HasSubstr("claim s is about split_accuracy(train), but"));
  EXPECT_THAT(std::string(lacking.message()), HasSubstr("needs analyses: [split_accuracy]"));
  EXPECT_TRUE(CheckCanBeSettled(
                  Bound(claim("train"), Concat(kTwoProtocols, "analyses: [split_accuracy]\n")))
                  .ok());
  const std::string eligible =
      "  - {id: e, above: {metric: test_accuracy, a: pe=rope, b: pe=nope}, where: protocol=clean, "
      "eligible: {metric: split_accuracy(lnog), above: 0.5}}\n";
  EXPECT_THAT(BindError(eligible), HasSubstr("has no split lnog"));
}

TEST(BindingTest, LayersAndHeadsThatTheModelsDoNotHave) {
  const auto claim = [](const std::string& metric) {
    return Concat("  - {id: s, above: {metric: ", metric,
                  ", a: pe=rope, b: pe=nope}, where: protocol=clean}\n");
  };
  EXPECT_THAT(BindError(claim("layer_drop(7)")), HasSubstr("layer 7 does not exist"));
  EXPECT_THAT(BindError(claim("greedy_accuracy(99)")), HasSubstr("heads of the models of "));
  const absl::Status lacking = CheckCanBeSettled(Bound(claim("layer_drop(0)"), kTwoProtocols));
  EXPECT_THAT(std::string(lacking.message()), HasSubstr("needs analyses: [layer_ablation]"));
  const std::string short_runs =
      Concat(kTwoProtocols, "analyses: [{name: cumulative_ablation, steps: 2}]\n");
  EXPECT_TRUE(CheckCanBeSettled(Bound(claim("greedy_accuracy(2)"), short_runs)).ok());
  EXPECT_THAT(BindError(claim("greedy_accuracy(3)"), short_runs),
              HasSubstr("only 2 heads of the models of"));
  EXPECT_TRUE(IsAboutAblation("greedy_accuracy(2)")) << "so seeds must have learned something";
}

TEST(BindingTest, ABrokenInlineSweepHasThePlaceOfItsKey) {
  const SheetResult read = ReadSheet(
      "name: s\nsweep: {name: t, pe: ropee, task: distance}\n"
      "claims: [{id: a, between: {metric: test_accuracy, cell: pe=rope, low: 0, high: 1}}]\n");
  const auto sweep = ParseSweepOf(*read.sheet, read.sheet->sweep_document);
  ASSERT_THAT(sweep.violations, SizeIs(1));
  EXPECT_THAT(Format(sweep.violations.front(), "s.yaml"),
              HasSubstr("s.yaml:2:8: unknown pe \"ropee\""));
  EXPECT_EQ(sweep.violations.front().path, "sweep.pe");
}

}  // namespace
}  // namespace pelab::claims
