#include "core/claims/sheet_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "core/base/strings.h"
#include "core/claims/entries.h"
#include "core/claims/metric.h"
#include "core/results/metrics.h"

namespace pelab::claims {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

Sheet ReadGood(const std::string& document) {
  SheetResult result = ReadSheet(document);
  for (const auto& violation : result.violations) ADD_FAILURE() << Format(violation, "sheet.yaml");
  return result.sheet.value_or(Sheet());
}
// The only violation, as a person sees it.
std::string ReadError(const std::string& document) {
  const SheetResult result = ReadSheet(document);
  EXPECT_FALSE(result.sheet.has_value()) << document;
  EXPECT_THAT(result.violations, SizeIs(1)) << document;
  return result.violations.empty() ? "" : Format(result.violations.front(), "sheet.yaml");
}
std::string WithClaim(const std::string& claim) {
  return Concat("name: s\nsweep: t.yaml\nclaims:\n  - ", claim, "\n");
}
std::string OfClaim(const std::string& claim) { return ReadError(WithClaim(claim)); }

TEST(EntriesTest, EveryKindAndMetricHasALine) {
  std::vector<std::string> kinds, metrics;
  for (const catalog::Entry& entry : KindEntries()) {
    kinds.emplace_back(entry.name);
    EXPECT_FALSE(entry.help.empty()) << entry.name;
  }
  for (const catalog::Entry& entry : MetricEntries()) metrics.emplace_back(entry.name);
  EXPECT_EQ(kinds, KindNames());
  std::vector<std::string> known = results::Metrics();
  known.insert(known.end(), Properties().begin(), Properties().end());
  EXPECT_EQ(metrics, known);
}

// The keys in the help of a kind are those that the reader knows.
TEST(EntriesTest, KindsNameTheirKeys) {
  for (const catalog::Entry& entry : KindEntries()) {
    const SheetResult result =
        ReadSheet(WithClaim(Concat("{id: a, ", entry.name, ": {color: red}}")));
    ASSERT_FALSE(result.violations.empty());
    const std::string text = Format(result.violations.back(), "sheet.yaml");
    const std::size_t known = text.find("known: ");
    ASSERT_NE(known, std::string::npos) << text;
    const std::string help(entry.help.substr(entry.help.find("keys: ")));
    for (const std::string& key :
         std::vector<std::string>(absl::StrSplit(text.substr(known + 7), ", "))) {
      EXPECT_THAT(help, testing::ContainsRegex(Concat("[ (]", key, "[ ,]|", key, "$")))
          << entry.name << ": " << text;
    }
  }
}

TEST(SheetReaderTest, ReadsEveryKind) {
  const Sheet sheet = ReadGood(R"(
name: table1-small
sweep: small/table1.yaml
max_seeds: 60
claims:
  - id: rope-above-nope
    says: RoPE is more accurate than NoPE on distance
    source: "arXiv 2505.13027, Table 1: 92.64 against 3.51 %"
    above: {metric: test_accuracy, a: pe=rope, b: pe=nope, by: 0.01}
    where: task=distance
    each: protocol
  - id: chain
    above: {metric: test_accuracy, chain: [pe=rope, pe=mla, pe=nope]}
    each: [protocol, task]
  - id: one-head-enough
    near: {metric: test_accuracy, a: {pe: partial_rope, heads: 1}, b: pe=rope, within: 0.05}
  - id: band
    between: {metric: 'epochs_to(0.9)', cell: pe=rope, low: 2, high: 9.5}
  - id: deposit
    most: {metric: deposit, cell: pe=rope, layers: shallow}
  - id: betas
    contrast: {metric: test_accuracy, of: [{cell: pe=mla train.beta1=0.9, weight: 1},
               {cell: pe=mla train.beta1=0.98, weight: -1}], by: 0}
    eligible: {metric: train_accuracy, above: 0.3, by: 0}
)");
  EXPECT_EQ(sheet.name, "table1-small");
  EXPECT_EQ(sheet.sweep_file, "small/table1.yaml");
  EXPECT_EQ(sheet.false_discovery_rate, 0.05);
  EXPECT_EQ(sheet.max_seeds, 60);
  ASSERT_THAT(sheet.claims, SizeIs(6));
  const Claim& above = sheet.claims[0];
  EXPECT_EQ(above.kind, Kind::kAbove);
  EXPECT_EQ(above.low, 0.01);
  EXPECT_EQ(above.cells[1].condition, "pe=nope");
  EXPECT_THAT(above.pairs, ElementsAre(std::pair<std::size_t, std::size_t>(0, 1)));
  EXPECT_EQ(above.cells[1].place.line, 9);
  EXPECT_THAT(above.each, ElementsAre("protocol"));
  EXPECT_FALSE(above.eligible.has_value());
  EXPECT_THAT(sheet.claims[1].cells, SizeIs(3));
  EXPECT_EQ(sheet.claims[2].cells[0].condition, "pe=partial_rope and pe.heads=1");
  EXPECT_EQ(sheet.claims[2].low, -0.05);
  EXPECT_EQ(sheet.claims[2].high, 0.05);
  EXPECT_EQ(sheet.claims[3].low, 2);
  EXPECT_EQ(sheet.claims[3].high, 9.5);
  EXPECT_EQ(sheet.claims[4].layers.which, Layers::Which::kShallow);
  ASSERT_TRUE(sheet.claims[4].eligible.has_value()) << "the default of claims about ablations";
  EXPECT_FALSE(sheet.claims[4].eligible->above.has_value());
  EXPECT_EQ(sheet.claims[4].eligible->by, 0.1);
  EXPECT_EQ(sheet.claims[5].cells[1].weight, -1);
  EXPECT_EQ(sheet.claims[5].eligible->above, 0.3);
}

TEST(SheetReaderTest, SeedsBeforeTheFirstOneAreLeftOut) {
  const std::string rest =
      "\nname: s\nsweep: t.yaml\nclaims: [{id: a, between: {metric: test_accuracy, cell: pe=rope, "
      "low: 0, high: 1}}]\n";
  EXPECT_EQ(ReadGood("first_seed: 3" + rest).first_seed, 3);
  EXPECT_EQ(ReadGood(rest).first_seed, 0);
  for (const char* wrong : {"1000", "-1", "x"}) {
    EXPECT_THAT(ReadError(Concat("first_seed: ", wrong, rest)),
                HasSubstr("first_seed must be an integer from 0 to 999"));
  }
}

TEST(SheetReaderTest, ListsOfCellsAreComparedEachWithEach) {
  const Sheet sheet = ReadGood(R"(
name: s
sweep: t.yaml
claims:
  - {id: worst, above: {metric: test_accuracy, b: pe=alibi, a: [pe=rope, {pe: nope}]}}
  - {id: chain, above: {metric: test_accuracy, chain: [pe=rope, pe=mla, pe=nope]}}
)");
  using Pair = std::pair<std::size_t, std::size_t>;
  ASSERT_THAT(sheet.claims[0].cells, SizeIs(3));
  EXPECT_EQ(sheet.claims[0].cells[2].condition, "pe=alibi");
  EXPECT_THAT(sheet.claims[0].pairs, ElementsAre(Pair(0, 2), Pair(1, 2)));
  EXPECT_THAT(sheet.claims[1].pairs, ElementsAre(Pair(0, 1), Pair(1, 2)));
  std::string many;
  for (int i = 0; i < 9; ++i) many += Concat(i == 0 ? "" : ", ", "pe=a", i);
  EXPECT_THAT(
      OfClaim(Concat("{id: a, above: {metric: test_accuracy, a: [", many, "], b: [", many, "]}}")),
      HasSubstr("9 cells a and 9 cells b make more than 64 pairs"));
}

TEST(SheetReaderTest, AnInlineSweepKeepsItsValues) {
  const Sheet sheet = ReadGood(R"(
name: s
sweep: {name: t, pe: [rope, {name: partial_rope, heads: [1, 2]}], task: distance, seed: 0..4,
        train: {lr: 1e-3}, model: {attention_bias: false}}
claims: [{id: a, between: {metric: test_accuracy, cell: pe=rope, low: 0, high: 1}}]
)");
  EXPECT_EQ(sheet.sweep_document,
            R"({"model":{"attention_bias":false},"name":"t","pe":["rope",{"heads":[1,2],)"
            R"("name":"partial_rope"}],"seed":"0..4","task":"distance","train":{"lr":0.001}})");
}

TEST(SheetReaderTest, ErrorsSayWhereAndWhatIsAllowed) {
  EXPECT_THAT(ReadError("name: s\nsweep: t.yaml\n"),
              HasSubstr("sheet.yaml:1:1: a claim sheet needs the key claims"));
  EXPECT_THAT(ReadError("name: s\nsweep: t.yaml\nclaim: []\nclaims: [{id: a, between: {metric: "
                        "test_accuracy, cell: pe=a, low: 0, high: 1}}]\n"),
              HasSubstr("sheet.yaml:3:1: unknown key of a claim sheet \"claim\"; did you mean "
                        "claims?"));
  EXPECT_THAT(ReadError("name: s\nsweep: t.yaml\nclaims: []\n"),
              HasSubstr("sheet.yaml:3:9: claims must be a list of 1 to 1000 claims; it has 0"));
  EXPECT_EQ(ReadError("name: s\npe: rope\ntask: distance\nseed: 0..4\ncolor: red\n"),
            "sheet.yaml:1:1: this is a sweep and no claim sheet: pelab run trains it; a sheet has "
            "the keys sweep and claims");
  EXPECT_THAT(OfClaim("{id: a, each: [protocol, task, protocol], between: {metric: test_accuracy, "
                      "cell: pe=a, low: 0, high: 1}}"),
              HasSubstr("4:36: the field protocol is there twice"));
  EXPECT_THAT(OfClaim("{id: a, eligible: {metric: test_accuracy, above: 50}, most: {metric: "
                      "deposit, cell: pe=a}}"),
              HasSubstr("test_accuracy is a fraction: write 0.5 for 50 points"));
  EXPECT_THAT(OfClaim("{id: a, eligible: {by: 5}, most: {metric: deposit, cell: pe=a}}"),
              HasSubstr("test_accuracy is a fraction: write 0.05 for 5 points"));
  EXPECT_THAT(ReadError("7"), HasSubstr("a claim sheet must be a map, not 7"));
  EXPECT_THAT(OfClaim("{id: a}"), HasSubstr("4:5: a claim needs exactly one of above, between"));
  EXPECT_THAT(OfClaim("{id: a, near: {metric: test_accuracy, a: pe=a, b: pe=b, within: 5}}"),
              HasSubstr("test_accuracy is a fraction: write 0.05 for 5 points"));
  EXPECT_THAT(OfClaim("{id: a, near: {metric: test_accuracy, a: rope, b: pe=b, within: 0.1}}"),
              HasSubstr("must be a condition such as pe=rope, not \"rope\""));
  EXPECT_THAT(OfClaim("{id: a, between: {metric: max_drop, cell: pe=a, low: 0, high: 30}}"),
              HasSubstr("max_drop is a fraction: write 0.3 for 30 points"));
  EXPECT_THAT(OfClaim("{id: 7, between: {metric: test_accuracy, cell: pe=a, low: 0, high: 1}}"),
              HasSubstr("4:10: id must be 1 to 100 letters"));
  EXPECT_THAT(
      OfClaim("{id: a, above: {metric: test_acuracy, a: pe=a, b: pe=b}}"),
      HasSubstr("4:29: unknown metric \"test_acuracy\"; did you mean test_accuracy? known: "));
  EXPECT_THAT(OfClaim("{id: a, between: {metric: \"a\\nb\", cell: pe=a, low: 0, high: 1}}"),
              HasSubstr("unknown metric \"a\\nb\""))
      << "a message is one line";
  EXPECT_THAT(OfClaim("{id: a, most: {metric: gini, cell: pe=a}}"),
              HasSubstr("unknown property \"gini\" of a seed; known: deposit"));
  EXPECT_THAT(OfClaim("{id: a, most: {metric: deposti, cell: pe=a}}"),
              HasSubstr("unknown property \"deposti\" of a seed; did you mean deposit? known: "));
  EXPECT_THAT(OfClaim("{id: a, above: {metric: test_accuracy, a: pe=a}}"),
              HasSubstr("above needs either a and b, or a chain"));
  EXPECT_THAT(OfClaim("{id: a, above: {metric: test_accuracy, a: pe=a, b: pe=b, by: much}}"),
              HasSubstr("claims[0].above.by must be a number, not \"much\""));
  EXPECT_THAT(OfClaim("{id: a, between: {metric: test_accuracy, cell: pe=a, low: 1, high: 0.5}}"),
              HasSubstr("claims[0].between.low must be below high (0.5), not 1"));
  EXPECT_THAT(OfClaim("{id: a, near: {metric: test_accuracy, a: pe=a, b: pe=b, within: 0}}"),
              HasSubstr("within must be a number above 0, not 0"));
  EXPECT_THAT(OfClaim("{id: a, above: {metric: test_accuracy, chain: [pe=a]}}"),
              HasSubstr("chain must be a list of 2 to 64 cells"));
  EXPECT_THAT(OfClaim("{id: a, contrast: {metric: test_accuracy, of: [{cell: pe=a, weight: 0}, "
                      "{cell: pe=b, weight: 1}]}}"),
              HasSubstr("4:73: a cell of weight 0 has no effect"));
  EXPECT_THAT(OfClaim("{id: a, most: {metric: deposit, cell: pe=a, layers: deep}}"),
              HasSubstr("layers must be a list of 1 to 64 layers (or any, or shallow)"));
  EXPECT_THAT(
      ReadError(WithClaim("{id: a, between: {metric: test_accuracy, cell: pe=a, low: 0, high: "
                          "1}}\n  - {id: a, between: {metric: test_accuracy, cell: pe=a, low: "
                          "0, high: 1}}")),
      HasSubstr("5:5: the id a is there twice"));
  EXPECT_THAT(
      ReadError("name: s\nsweep: t.yaml\nmax_seeds: 2000\nclaims: [{id: a, between: {metric: "
                "test_accuracy, cell: pe=a, low: 0, high: 1}}]\n"),
      HasSubstr("3:12: max_seeds must be an integer from 1 to 1000, not 2000"));
}

// In block style the value stands in another line than the key `metric`.
TEST(SheetReaderTest, AWrongLimitIsReportedAtItsValue) {
  const auto of = [](const std::string& kind, const std::string& keys) {
    return ReadError(Concat("name: s\nsweep: t.yaml\nclaims:\n  - id: a\n    ", kind,
                            ":\n      metric: test_accuracy\n", keys));
  };
  const std::string two = "      a: pe=a\n      b: pe=b\n";
  EXPECT_EQ(of("near", two + "      within: 2\n"),
            "sheet.yaml:9:15: claims[0].near.within is 2, but test_accuracy is a fraction: write "
            "0.02 for 2 points");
  EXPECT_EQ(of("near", two + "      within: -5\n"),
            "sheet.yaml:9:15: claims[0].near.within must be a number above 0, not -5");
  EXPECT_EQ(of("above", two + "      by: -5\n"),
            "sheet.yaml:9:11: claims[0].above.by is -5, but test_accuracy is a fraction: write "
            "-0.05 for -5 points");
  EXPECT_EQ(of("between", "      cell: pe=a\n      low: 0.9\n      high: 0.1\n"),
            "sheet.yaml:8:12: claims[0].between.low must be below high (0.1), not 0.9");
  EXPECT_EQ(of("between", "      cell: pe=a\n      low: 0\n      high: 30\n"),
            "sheet.yaml:9:13: claims[0].between.high is 30, but test_accuracy is a fraction: "
            "write 0.3 for 30 points");
  EXPECT_EQ(of("above", two + "    eligible:\n      above: 50\n"),
            "sheet.yaml:10:14: claims[0].eligible.above is 50, but test_accuracy is a fraction: "
            "write 0.5 for 50 points");
}

TEST(SheetReaderTest, ClaimsThatStateTheSameAreRefused) {
  const std::string claim = ", above: {metric: test_accuracy, a: pe=a, b: pe=b}";
  const auto with = [&](const std::string& second) {
    return WithClaim(Concat("{id: one", claim, ", says: x}\n  - {id: two", second, "}"));
  };
  const std::string refusal =
      "sheet.yaml:5:5: claims[1] (two) states exactly what claims[0] (one, line 4) states; a "
      "sheet states each claim once";
  EXPECT_EQ(ReadError(with(claim)), refusal);
  EXPECT_EQ(ReadError(with(claim + ", says: y, source: z")), refusal);
  EXPECT_EQ(ReadError(with(", above: {by: 0, metric: test_accuracy, a: {pe: a}, b: [pe=b]}")),
            refusal)
      << "in other words";
  for (const std::string& other :
       {Concat(claim, ", each: task"), Concat(claim, ", where: task=distance"),
        Concat(claim, ", eligible: {}"),
        std::string(", above: {metric: test_accuracy, a: pe=b, b: pe=a}"),
        std::string(", above: {metric: train_accuracy, a: pe=a, b: pe=b}"),
        std::string(", above: {metric: test_accuracy, a: pe=a, b: pe=b, by: 0.1}"),
        std::string(", near: {metric: test_accuracy, a: pe=a, b: pe=b, within: 0.1}")}) {
    EXPECT_THAT(ReadGood(with(other)).claims, SizeIs(2)) << other;
  }
}

TEST(SheetReaderTest, EveryErrorIsReported) {
  const SheetResult result = ReadSheet(R"(
name: ""
sweep: [a]
claims:
  - {id: a, above: {metric: none, a: pe=a, b: []}}
  - {is: b}
)");
  EXPECT_FALSE(result.sheet.has_value());
  EXPECT_THAT(result.violations, SizeIs(7));
}

}  // namespace
}  // namespace pelab::claims
