#include "client/terminal/grid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/render/text.h"

namespace pelab::render {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr double kNone = NAN;

Grid::Cell Cell(std::vector<Grid::Mark> seeds, double accuracy, bool complete) {
  return {std::move(seeds), {0.05, 0.2, 0.5, 1, kNone, kNone, kNone, kNone}, accuracy, complete};
}

Grid TwoByTwo() {
  using Mark = Grid::Mark;
  Grid grid;
  grid.title = "pe";
  grid.tasks = {"distance", "counting"};
  grid.rows = {{"nope", {Cell({Mark::kSucceeded, Mark::kSucceeded}, 0.25, true), std::nullopt}},
               {"rope",
                {Cell({Mark::kRunning, Mark::kQueued}, 0.9996, false),
                 Cell({Mark::kFailed, Mark::kCancelled}, 0.5, false)}}};
  return grid;
}

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines(1);
  for (const char c : text) {
    if (c == '\n') {
      lines.emplace_back();
    } else {
      lines.back() += c;
    }
  }
  lines.pop_back();  // the empty piece after the last newline
  return lines;
}

TEST(SparklineTest, EightLevelsFromNothingToAll) {
  const std::vector<double> values = {0, 0.124, 0.125, 0.25, 0.4, 0.5, 0.7, 0.8, 0.875, 1, kNone};
  EXPECT_EQ(Sparkline(values, {}), "__.:-=+*## ");
  EXPECT_EQ(Sparkline({0, 0.5, 1}, {.color = true}), "▁▅█");
  EXPECT_EQ(Sparkline({-3, 7}, {}), "_#") << "outside of the scale: its ends";
}

TEST(GridTest, ALineARow) {
  EXPECT_EQ(GridText(TwoByTwo(), {}),
            "pe    distance            counting\n"
            "nope  oo _.=#      0.250\n"
            "rope  >. _.=#     ~1.000  x- _.=#     ~0.500\n"
            "o succeeded  > running  . waiting  x failed  - cancelled\n"
            "test accuracy 0-1 by epoch\n");
}

TEST(GridTest, ColorsAndMarksOnATerminal) {
  const std::string text = GridText(TwoByTwo(), {.color = true, .width = 100});
  EXPECT_THAT(text, HasSubstr("\x1b[32m✓\x1b[0m\x1b[32m✓\x1b[0m ▁▂▅█"));
  EXPECT_THAT(text, HasSubstr("\x1b[36m▸\x1b[0m running"));
}

TEST(GridTest, ManySeedsAreCounted) {
  Grid grid = TwoByTwo();
  grid.rows[0].cells[0]->seeds.assign(12, Grid::Mark::kSucceeded);
  grid.rows[0].cells[0]->seeds[3] = Grid::Mark::kFailed;
  EXPECT_THAT(GridText(grid, {}), HasSubstr("nope  11o 1x _.=#"));
}

TEST(GridTest, TasksThatDoNotFitGoOnBelow) {
  const std::string text = GridText(TwoByTwo(), {.width = 40});
  const std::vector<std::string> lines = LinesOf(text);
  ASSERT_EQ(lines.size(), 9U);
  EXPECT_EQ(lines[0], "pe    distance");
  EXPECT_EQ(lines[3], "pe    counting");
  for (const std::string& line : lines) EXPECT_LE(DisplayWidth(line), 40) << line;
}

TEST(GridTest, InLittleRoomTheLeastGoesFirst) {
  const std::vector<std::string> without = LinesOf(GridText(TwoByTwo(), {.width = 40}, 6));
  ASSERT_EQ(without.size(), 5U);
  EXPECT_EQ(without[2], "rope  >. ~1.000  x- ~0.500") << "beside each other without their courses";
  const std::vector<std::string> cut = LinesOf(GridText(TwoByTwo(), {.width = 80}, 3));
  ASSERT_EQ(cut.size(), 3U);
  EXPECT_EQ(cut[1], "nope  oo");
  EXPECT_THAT(cut[2], StartsWith("and 1 more rows  "));
}

TEST(GridTest, LongLabelsKeepTheirEnds) {
  Grid grid = TwoByTwo();
  grid.rows[0].label = "partial_rope(select=list,head_list=[0, 1])";
  grid.rows[1].label = "partial_rope(select=list,head_list=[2, 3])";
  const std::string text = GridText(grid, {.width = 40});
  EXPECT_THAT(text, HasSubstr("partial_rope(…0, 1])  "));
  EXPECT_THAT(text, HasSubstr("partial_rope(…2, 3])  "));
}

TEST(GridTest, NamesAreData) {
  Grid grid = TwoByTwo();
  grid.rows[0].label = "\x1b[31mno";
  grid.tasks[0] = "a\nb";
  const std::string text = GridText(grid, {});
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, HasSubstr("a\\nb"));
  EXPECT_EQ(LinesOf(text).size(), 5U);
  EXPECT_EQ(GridText({}, {}), "");
}

}  // namespace
}  // namespace pelab::render
