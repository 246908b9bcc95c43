#include "core/experiment/configuration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/catalog/catalog.h"
#include "core/experiment/canonical_json.h"
#include "core/experiment/job.h"
#include "core/experiment/sweep.h"

namespace pelab::experiment {
namespace {

using testing::HasSubstr;

// Seed 0, seeds with many digits, seeds with the digits of other members, and the largest seed.
constexpr std::int64_t kSeeds[] = {0, 1, 7, 42, 128, 574, 30000, 1234567890123, kMaxSeed};

std::string Canonical(const std::string& protocol, const std::string& pe, const std::string& task,
                      std::int64_t seed, const catalog::Values& set = {}) {
  return ToCanonicalJson(MakeJob(protocol, pe, task, seed, set));
}

std::ptrdiff_t Marks(const std::string& text) {
  return std::count(text.begin(), text.end(), kSeedMark);
}

class ConfigurationTest
    : public testing::TestWithParam<std::tuple<std::string, std::string, std::string>> {};

std::vector<std::string> Names(const std::vector<catalog::Entry>& entries) {
  std::vector<std::string> names;
  for (const catalog::Entry& entry : entries) names.emplace_back(entry.name);
  return names;
}
INSTANTIATE_TEST_SUITE_P(Every, ConfigurationTest,
                         testing::Combine(testing::Values("clean", "published"),
                                          testing::ValuesIn(Names(catalog::Pes())),
                                          testing::ValuesIn(Names(catalog::Tasks()))));

TEST_P(ConfigurationTest, EverySeedHasTheSameTemplateAndGetsItsSpecBack) {
  const auto& [protocol, pe, task] = GetParam();
  std::set<std::string> templates;
  for (const std::int64_t seed : kSeeds) {
    const std::string spec = Canonical(protocol, pe, task, seed);
    const std::string shared = TemplateOf(spec, seed);
    EXPECT_EQ(Marks(shared), 2) << "seed and task.data_seed, in " << shared;
    EXPECT_EQ(FillTemplate(shared, seed), spec);
    templates.insert(shared);
  }
  EXPECT_EQ(templates.size(), 1u);
}

TEST_P(ConfigurationTest, APartSeedOfItsOwnStays) {
  const auto& [protocol, pe, task] = GetParam();
  for (const std::int64_t fixed : kSeeds) {
    std::set<std::string> templates;
    for (const std::int64_t seed : kSeeds) {
      const std::string spec =
          Canonical(protocol, pe, task, seed, {{"task.data_seed", catalog::Value(fixed)}});
      const std::string shared = TemplateOf(spec, seed);
      EXPECT_EQ(Marks(shared), seed == fixed ? 2 : 1) << "equal by accident or not: " << shared;
      EXPECT_EQ(FillTemplate(shared, seed), spec);
      if (seed != fixed) templates.insert(shared);
    }
    EXPECT_EQ(templates.size(), 1u) << "data seed " << fixed;
    EXPECT_THAT(*templates.begin(), HasSubstr("\"data_seed\":" + std::to_string(fixed) + ","));
  }
}

TEST(ConfigurationTextTest, OnlyWholeSeedsAreMarked) {
  const auto shown = [](const std::string& json, std::int64_t seed) {
    std::string text = TemplateOf(json, seed);
    EXPECT_EQ(FillTemplate(text, seed), json);
    std::replace(text.begin(), text.end(), kSeedMark, '#');
    return text;
  };
  EXPECT_EQ(shown(R"({"seed":1})", 1), R"({"seed":#})");
  EXPECT_EQ(shown(R"({"seed":12,"x":1})", 1), R"({"seed":12,"x":1})");
  EXPECT_EQ(shown(R"({"seed":21})", 1), R"({"seed":21})");
  EXPECT_EQ(shown(R"({"seed":1.5})", 1), R"({"seed":1.5})");
  EXPECT_EQ(shown(R"({"seed":1e3})", 1), R"({"seed":1e3})");
  EXPECT_EQ(shown(R"({"a_seed":3,"b_seed":4,"seed":3})", 3), R"({"a_seed":#,"b_seed":4,"seed":#})");
  EXPECT_EQ(shown(R"({"reseed":3,"seeds":3})", 3), R"({"reseed":3,"seeds":3})");
  EXPECT_EQ(shown(R"({"s":"\"seed\":3,","t":"_seed"})", 3), R"({"s":"\"seed\":3,","t":"_seed"})");
  EXPECT_EQ(shown("", 0), "");
  EXPECT_EQ(shown("seed\":3,", 3), "seed\":3,") << "there is no name before it";
}

}  // namespace
}  // namespace pelab::experiment
