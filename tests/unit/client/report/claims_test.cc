#include "client/report/claims.h"

#include <gtest/gtest.h>

namespace pelab::client::report {
namespace {

using render::Json;

ClaimCell CellOf(const std::string& pe, const BySeed& test) {
  return {.protocol = "clean",
          .task = "distance",
          .pe_label = pe,
          .spec = {{"pe", {{"name", pe}}}, {"model", {{"layers", 2}, {"heads", 4}}}},
          .test = test};
}

Outcome Judged(const std::vector<ClaimCell>& cells, const Json& rule) {
  return Judge(cells, "clean", "distance", rule).value_or(Outcome{"absent", ""});
}

const Json kAbove = {
    {"kind", "order"}, {"of", "test"}, {"above", Json::array({Json::array({"rope", "nope"})})}};

TEST(Claims, AnOrderIsPairedBySeed) {
  const auto rope = CellOf("rope", {{0, 0.9}, {1, 0.5}, {2, 0.7}});
  EXPECT_EQ(Judged({rope, CellOf("nope", {{0, 0.8}, {1, 0.4}, {2, 0.6}})}, kAbove).verdict,
            "holds");
  EXPECT_EQ(
      Judged({CellOf("rope", {{0, 0.7}, {1, 0.3}}), CellOf("nope", {{0, 0.8}, {1, 0.4}})}, kAbove)
          .verdict,
      "fails");
  const Outcome open =
      Judged({rope, CellOf("nope", {{0, 0.5}, {1, 0.6}, {2, 0.7}, {7, 0.0}})}, kAbove);
  EXPECT_EQ(open.verdict, "undecided");
  // Differences 40, -10 and 0: mean 10, half width 4.30265 * 26.4575 / sqrt(3).
  EXPECT_EQ(open.ours, "rope − nope: +10.0 ± 65.7");
}

TEST(Claims, OneSeedDecidesNothing) {
  EXPECT_EQ(Judged({CellOf("rope", {{0, 0.9}}), CellOf("nope", {{0, 0.1}})}, kAbove).verdict,
            "undecided");
  EXPECT_EQ(Judged({CellOf("rope", {}), CellOf("nope", {{0, 0.1}})}, kAbove).ours,
            "rope − nope: no seeds");
}

TEST(Claims, WhatIsNotThereIsNotJudged) {
  EXPECT_EQ(Judged({CellOf("rope", {{0, 0.9}})}, kAbove).verdict, "absent");
  ClaimCell other = CellOf("nope", {{0, 0.1}});
  other.protocol = "published";
  EXPECT_EQ(Judged({CellOf("rope", {{0, 0.9}}), other}, kAbove).verdict, "absent");
}

TEST(Claims, BandsAreForThePapersSizeAlone) {
  const Json band = {{"kind", "band"}, {"of", "test"}, {"pe", "rope"}, {"low", 80}, {"high", 95}};
  EXPECT_EQ(Judged({CellOf("rope", {{0, 0.9}, {1, 0.9}})}, band).verdict, "other size");
}

TEST(Claims, SeedsAreCountedWhereIndicesAreDefined) {
  ClaimCell cell = CellOf("rope", {{0, 0.9}, {1, 0.9}, {2, 0.9}, {3, 0.02}});
  auto& indices = cell.indices[{"zero", "clean", "test", "head"}];
  for (int seed = 0; seed < 3; ++seed) indices[seed] = {true, 0.6, 0, {0}};
  indices[3] = {};
  const Json often = {{"kind", "seeds"}, {"of", "deposit"}, {"pe", "rope"}, {"must", "often"}};
  const Outcome outcome = Judged({cell}, often);
  EXPECT_EQ(outcome.verdict, "holds");
  // Clopper and Pearson: 0.025^(1/3) = 0.2924.
  EXPECT_EQ(outcome.ours, "3 of 3 seeds (1 undefined); share 0.29 to 1.00");
  Json rarely = often;
  rarely["must"] = "rarely";
  EXPECT_EQ(Judged({cell}, rarely).verdict, "fails");
  Json deeper = often;
  deeper["of"] = "starts_deeper";
  deeper["must"] = "ever";
  EXPECT_EQ(Judged({cell}, deeper).verdict, "fails");
  Json layers = often;
  layers["layers"] = {5};
  EXPECT_EQ(Judged({cell}, layers).verdict, "absent");  // the model has two layers
}

TEST(Claims, ThePapersFileIsWhole) {
  const Json paper = Paper({});
  EXPECT_TRUE(paper["claims"].empty());
  EXPECT_GE(paper["rules"].size(), 6U);
}

}  // namespace
}  // namespace pelab::client::report
