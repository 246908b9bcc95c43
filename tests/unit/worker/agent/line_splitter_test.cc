#include "worker/agent/line_splitter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace pelab::agent {
namespace {

using ::testing::ElementsAre;

TEST(LineSplitter, CutsWhereverTheBytesBreak) {
  const std::string text = "one\n\nthree\nrest";
  for (std::size_t first = 0; first <= text.size(); ++first) {
    LineSplitter splitter(10);
    std::vector<std::string> lines;
    const auto collect = [&](absl::string_view line) { lines.emplace_back(line); };
    EXPECT_TRUE(splitter.Feed(absl::string_view(text).substr(0, first), collect));
    EXPECT_TRUE(splitter.Feed(absl::string_view(text).substr(first), collect));
    EXPECT_THAT(lines, ElementsAre("one", "", "three")) << first;
    EXPECT_EQ(splitter.rest(), "rest");
  }
}

TEST(LineSplitter, RefusesALineThatIsTooLong) {
  LineSplitter splitter(4);
  std::vector<std::string> lines;
  const auto collect = [&](absl::string_view line) { lines.emplace_back(line); };
  EXPECT_TRUE(splitter.Feed("1234\n12", collect));
  EXPECT_FALSE(splitter.Feed("345\nlater\n", collect));
  EXPECT_FALSE(splitter.Feed("more\n", collect));
  EXPECT_THAT(lines, ElementsAre("1234"));
}

}  // namespace
}  // namespace pelab::agent
