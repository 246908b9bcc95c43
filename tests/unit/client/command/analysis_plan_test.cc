#include "client/command/analysis_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/render/json.h"
#include "core/rpc/status.h"

namespace pelab::client {
namespace {

using render::Json;
using ::testing::HasSubstr;

Json ParametersOf(const AnalysisWords& words, const std::string& protocol) {
  const auto analyses = ResolveAnalyses(words, protocol);
  EXPECT_TRUE(analyses.ok()) << analyses.status();
  return Json::parse(analyses.value().at(0).parameters_json());
}

TEST(ResolveAnalysesTest, DefaultsAreTheProtocols) {
  EXPECT_EQ(ParametersOf({.names = {"head_ablation"}}, "clean")["hygiene"], "clean");
  EXPECT_EQ(ParametersOf({.names = {"head_ablation"}}, "published")["hygiene"], "authors");
  const Json set =
      ParametersOf({.names = {"head_ablation"},
                    .set = {"head_ablation.hygiene=clean", "head_ablation.method=mean"}},
                   "published");
  EXPECT_EQ(set["hygiene"], "clean");
  EXPECT_EQ(set["method"], "mean");
  EXPECT_EQ(set["data"], "all");
}

TEST(ResolveAnalysesTest, SeveralAndRepeated) {
  const auto analyses =
      ResolveAnalyses({.names = {"layer_ablation", "head_ablation", "layer_ablation"}}, "clean");
  ASSERT_TRUE(analyses.ok()) << analyses.status();
  ASSERT_EQ(analyses->size(), 2u);
  EXPECT_EQ((*analyses)[0].name(), "layer_ablation");
  EXPECT_GT((*analyses)[1].version(), 0);
}

TEST(ResolveAnalysesTest, RefusesWithWhatIsAllowed) {
  const auto message = [](const AnalysisWords& words) {
    const absl::Status status = CheckAnalysisWords(words);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    const auto violations = rpc::GetViolations(status);
    return violations && violations->violations_size() > 0 ? violations->violations(0).message()
                                                           : std::string(status.message());
  };
  EXPECT_THAT(message({.names = {"head_ablatoin"}}), HasSubstr("did you mean head_ablation"));
  EXPECT_THAT(message({.names = {"head_ablation"}, .set = {"head_ablation.methd=mean"}}),
              HasSubstr("did you mean head_ablation.method"));
  EXPECT_THAT(message({.names = {"head_ablation"}, .set = {"train.lr=0.1"}}),
              HasSubstr("\"train.lr\" is no parameter of head_ablation"));
  EXPECT_THAT(message({.names = {"head_ablation"}, .set = {"layer_ablation.method=mean"}}),
              HasSubstr("is no parameter of head_ablation"));
  EXPECT_THAT(message({.names = {"head_ablation"}, .set = {"head_ablation.method=none"}}),
              HasSubstr("zero"));
  EXPECT_THAT(message({.names = {"head_ablation"}, .set = {"head_ablation.method"}}),
              HasSubstr("FIELD=VALUE"));
  EXPECT_THAT(message({.names = {"head_ablation"}, .protocol = "publish"}),
              HasSubstr("known: clean, published, matched"));
  EXPECT_THAT(message({}), HasSubstr("--analysis"));
}

}  // namespace
}  // namespace pelab::client
