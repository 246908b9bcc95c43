#include "core/pages/assets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "tests/support/status_matchers.h"

namespace pelab::pages {
namespace {

std::string Bytes(std::string_view name) {
  const Asset* asset = FindAsset(name);
  return asset == nullptr ? "" : std::string(asset->bytes);
}

TEST(Assets, HoldWhatThePagesLoad) {
  EXPECT_NE(Bytes("plotly.js").find("plotly.js (cartesian - minified)"), std::string::npos);
  EXPECT_GT(Bytes("plotly.js").size(), 1'000'000U);
  EXPECT_NE(Bytes("charts.js").find("var pelabCharts"), std::string::npos);
  for (const char* name : {"drawCurves", "drawHeatMap", "drawViolins", "drawHeadCounts",
                           "drawLayers", "drawSparkline", "drawTable"}) {
    EXPECT_NE(Bytes("charts.js").find(name), std::string::npos) << name;
  }
  EXPECT_NE(Bytes("base.css").find("--series-0"), std::string::npos);
}

// A compiler's cache once gave back the object of older files.
TEST(Assets, AreTheFilesOfThisBuild) {
  ASSERT_FALSE(Assets().empty());
  for (const Asset& asset : Assets()) {
    const std::string path = absl::StrCat(PELAB_BUILT_PAGES, "/", std::string(asset.name));
    const absl::StatusOr<std::string> file = ReadFile(path, 10'000'000);
    ASSERT_THAT(file, IsOk());
    EXPECT_TRUE(asset.bytes == *file) << path << " has changed";
  }
}

TEST(Assets, CarryPlotlysLicence) {
  const std::string licences = Bytes("licences.txt");
  EXPECT_NE(licences.find("plotly.js"), std::string::npos);
  EXPECT_NE(licences.find("Plotly Technologies Inc."), std::string::npos);
  EXPECT_NE(licences.find("THE SOFTWARE IS PROVIDED \"AS IS\""), std::string::npos);
}

TEST(Assets, CanStandInAScriptElement) {
  for (const Asset& asset : Assets()) {
    if (asset.content_type.starts_with("text/html")) continue;
    std::string text(asset.bytes);
    std::transform(text.begin(), text.end(), text.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    EXPECT_EQ(text.find("</script"), std::string::npos) << asset.name;
    EXPECT_EQ(text.find("<!--"), std::string::npos) << asset.name;
  }
}

TEST(Assets, HaveTheirTypesAndOneName) {
  std::set<std::string_view> names;
  for (const Asset& asset : Assets()) {
    EXPECT_TRUE(names.insert(asset.name).second) << asset.name;
    EXPECT_FALSE(asset.bytes.empty()) << asset.name;
  }
  EXPECT_EQ(FindAsset("charts.js")->content_type, "text/javascript; charset=utf-8");
  EXPECT_EQ(FindAsset("base.css")->content_type, "text/css; charset=utf-8");
  EXPECT_EQ(FindAsset("licences.txt")->content_type, "text/plain; charset=utf-8");
  EXPECT_EQ(FindAsset("../base.css"), nullptr);
}

}  // namespace
}  // namespace pelab::pages
