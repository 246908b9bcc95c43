#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>

#include "client/terminal/plot.h"
#include "client/terminal/table.h"
#include "core/render/json.h"
#include "core/render/text.h"

namespace pelab::render {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Align = Column::Align;

constexpr Style kPlain{.color = false, .width = 80};
constexpr Style kColor{.color = true, .width = 80};

TEST(EscapeTest, NothingInDataReachesTheTerminalRaw) {
  EXPECT_EQ(Escape("plain ümlaut 数"), "plain ümlaut 数");
  EXPECT_EQ(Escape("\x1b[31mred"), "\\x1b[31mred");
  EXPECT_EQ(Escape("a\nb\tc\r"), "a\\nb\\tc\\r");
  EXPECT_EQ(Escape(std::string_view("\0\x7f", 2)), "\\x00\\x7f");
  EXPECT_EQ(Escape("\xc2\x9b"
                   "31m"),
            "\\x9b31m")
      << "the one-character form of ESC [";
  EXPECT_EQ(Escape("\xe2\x80\xaetxt"), "\\u202etxt") << "right-to-left override";
  EXPECT_EQ(Escape("\xff\xc3("), "\\xff\\xc3(") << "not UTF-8";
  EXPECT_EQ(Escape("\xc0\xaf"), "\\xc0\\xaf") << "overlong";
  EXPECT_EQ(Escape("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "surrogate";
  EXPECT_EQ(Escape("a\nb\x1b", /*keep_lines=*/true), "a\nb\\x1b");
}

TEST(DisplayableTest, KeepsWhatTheFormNeeds) {
  const std::string text = "a\tü\r\n\x1b[1;31mred\x1b[0m\x1b]0;x\a\xc2\x9b\xff\n";
  EXPECT_EQ(Displayable(text, Markup::kPlain),
            "a\tü\\r\n\\x1b[1;31mred\\x1b[0m\\x1b]0;x\\x07\\x9b\\xff\n");
  EXPECT_EQ(Displayable(text, Markup::kColored),
            "a\tü\\r\n\x1b[1;31mred\x1b[0m\\x1b]0;x\\x07\\x9b\\xff\n");
  EXPECT_EQ(Displayable("a,b\r\n\r1\x1b[31m", Markup::kCsv), "a,b\r\n\\r1\\x1b[31m");
  EXPECT_EQ(Displayable("{\n\"a\": \"\xc2\x9b\"}", Markup::kJson), "{\n\"a\": \"\\u009b\"}");
  EXPECT_EQ(Displayable("\x1b[38;5;1Hm", Markup::kColored), "\\x1b[38;5;1Hm") << "no color";
}

TEST(WidthTest, CountsColumnsNotBytes) {
  EXPECT_EQ(DisplayWidth("±0.1"), 4);
  EXPECT_EQ(DisplayWidth("数"), 2);
  EXPECT_EQ(DisplayWidth("e\xcc\x81"), 1);
  EXPECT_EQ(DisplayWidth("⌚🧪"), 4);
  EXPECT_EQ(DisplayWidth("\u0939\u093F"), 1) << "a vowel sign over a Devanagari letter";
  EXPECT_EQ(DisplayWidth("\xff("), 2) << "a byte that is not UTF-8 takes one column";
  EXPECT_EQ(DisplayWidth("\x1b[1;32mab\x1b[0m"), 2);
  EXPECT_EQ(Truncate("abcdef", 4), "abc…");
  EXPECT_EQ(Truncate("数数数", 4), "数…");
  EXPECT_EQ(Truncate("abc", 3), "abc");
  EXPECT_EQ(TruncateMiddle("partial_rope(select=list,head_list=[2, 3])", 25),
            "partial_rope(sel…=[2, 3])");
  EXPECT_EQ(TruncateMiddle("abcdef", 4), "ab…f");
  EXPECT_EQ(TruncateMiddle("abcdef", 2), "a…");
  EXPECT_EQ(TruncateMiddle("abcdef", 0), "");
  EXPECT_EQ(TruncateMiddle("abc", 3), "abc");
  EXPECT_EQ(TruncateMiddle("数数数", 4), "数…") << "no half of a character";
  EXPECT_EQ(TruncateMiddle("数数数e\xcc\x81", 4), "数…e\xcc\x81");
  EXPECT_EQ(PadLeft("±", 3), "  ±");
}

TEST(NumbersTest, Formats) {
  EXPECT_EQ(Fixed(0.70125, 4), "0.7013");
  EXPECT_EQ(Fixed(std::nullopt, 4), "-");
  EXPECT_EQ(FormatSeconds(0.84), "0.8s");
  EXPECT_EQ(FormatSeconds(59.7), "1m00s");
  EXPECT_EQ(FormatSeconds(80), "1m20s");
  EXPECT_EQ(FormatSeconds(11100), "3h05m");
  EXPECT_EQ(FormatSeconds(std::nan("")), "?");
  EXPECT_EQ(FormatTime(0), "1970-01-01 00:00:00 UTC");
  for (double value : {0.1, 1.0 / 3, 2.0 / 3, 1e-300, 4503599627370497.5}) {
    EXPECT_EQ(std::bit_cast<std::uint64_t>(std::stod(Shortest(value))),
              std::bit_cast<std::uint64_t>(value));
  }
}

Table SampleTable() {
  Table table({{"job", Align::kRight}, {"pe", Align::kLeft, true}, {"accuracy", Align::kRight}});
  table.AddRow({"1", "rope", "0.7012"});
  table.AddRow({"12", "rope(base=500)", "0.5000"}, "31");
  return table;
}

TEST(TableTest, Golden) {
  EXPECT_EQ(SampleTable().Render(kPlain),
            "job  pe              accuracy\n"
            "  1  rope              0.7012\n"
            " 12  rope(base=500)    0.5000\n");
  EXPECT_EQ(SampleTable().Render(kColor),
            "\x1b[1mjob  pe              accuracy\x1b[0m\n"
            "  1  rope              0.7012\n"
            "\x1b[31m 12  rope(base=500)    0.5000\x1b[0m\n");
}

TEST(TableTest, ShrinksTextNeverNumbers) {
  EXPECT_EQ(SampleTable().Render({.color = false, .width = 25}),
            "job  pe          accuracy\n"
            "  1  rope          0.7012\n"
            " 12  rope          0.5000\n"
            "     (base=500)\n");
  EXPECT_THAT(SampleTable().Render({.color = false, .width = 5}), HasSubstr("0.7012"));
}

TEST(TableTest, WordsStayWholeWhereTheyFit) {
  Table table({{"what", Column::Align::kLeft, true}, {"why", Column::Align::kLeft, true}});
  table.AddRow({"the feed-forward-block of a layer", "one two three four five six seven"});
  EXPECT_EQ(table.Render({.color = false, .width = 24}),
            "what               why\n"
            "the                one\n"
            "feed-forward-block two\n"
            "of a layer         thre…\n");
}

TEST(StyleTest, ColumnsAsksForAWidth) {
  const auto width = [](const char* columns) {
    setenv("COLUMNS", columns, 1);
    const int asked = StyleOfStdout().width;
    unsetenv("COLUMNS");
    return asked;
  };
  const int usual = StyleOfStdout().width;
  EXPECT_EQ(width("132"), 132);
  EXPECT_EQ(width("100000"), 400);
  for (const char* wrong : {"", "0", "-5", "wide", "80x", "10"}) EXPECT_EQ(width(wrong), usual);
}

TEST(TableTest, TextGoesOnBelowForThreeLines) {
  Table table({{"error", Column::Align::kLeft, true}, {"epochs", Column::Align::kRight}});
  table.AddRow({"CUDA out of memory: tried to allocate 2 GiB", "1/2"}, "31");
  EXPECT_EQ(table.Render({.color = false, .width = 25}),
            "error              epochs\n"
            "CUDA out of           1/2\n"
            "memory: tried to\n"
            "allocate 2 GiB\n");
  EXPECT_EQ(table.Render({.color = true, .width = 19}),
            "\x1b[1merror        epochs\x1b[0m\n"
            "\x1b[31mCUDA out of     1/2\n"
            "memory:\n"
            "tried to a…\x1b[0m\n");
}

TEST(TableTest, LabelsThatAreCutKeepTheirEnds) {
  Table table({LabelColumn("pe"), {"n", Align::kRight}});
  table.AddRow({"partial_rope(select=list,head_list=[0, 1])", "2/2"});
  table.AddRow({"partial_rope(select=list,head_list=[2, 3])", "1/2"});
  EXPECT_EQ(table.Render({.color = false, .width = 17}),
            "pe              n\n"
            "partial_rope  2/2\n"
            "(select=list\n"
            ",head_li…1])\n"
            "partial_rope  1/2\n"
            "(select=list\n"
            ",head_li…3])\n");
}

TEST(TableTest, CellsOfSpacesAreNoHarm) {
  Table table({{"error", Column::Align::kLeft, true}});
  table.AddRow({std::string(100, ' ')});
  table.AddRow({std::string(100, ' ') + "x"});
  table.AddRow({"x" + std::string(100, ' ')});
  EXPECT_EQ(table.Render({.color = false, .width = 20}), "error\n\nx\nx\n");
}

TEST(WrapTest, BreaksLongNamesBetweenTheirParts) {
  EXPECT_EQ(Wrap("rope-above-nope[clean, 1]", 12), "rope-above-\nnope[clean,\n1]");
  EXPECT_EQ(Wrap("rope-band[matched, 1]", 12), "rope-band\n[matched, 1]");
  EXPECT_EQ(Wrap("see pe-labels", 10), "see\npe-labels") << "a word that fits stays whole";
}

TEST(WrapTest, BreaksAtSpacesAndLongWordsAnywhere) {
  EXPECT_EQ(Wrap("one two three", 7), "one two\nthree");
  EXPECT_EQ(Wrap("one two three", 6), "one\ntwo\nthree");
  EXPECT_EQ(Wrap("  as it  was", 20), "  as it  was");
  EXPECT_EQ(Wrap("abcdefghij k", 4), "abcd\nefgh\nij k");
  EXPECT_EQ(Wrap("partial_rope(heads=2)", 12), "partial_rope\n(heads=2)");
  EXPECT_EQ(Wrap("a partial_rope(heads=2)", 10), "a\npartial_\nrope\n(heads=2)");
  EXPECT_EQ(Wrap("one partial_rope", 12), "one\npartial_rope") << "a word that fits stays whole";
  EXPECT_EQ(Wrap("abcdef_ghijkl", 4), "abcd\nef_\nghij\nkl");
  EXPECT_EQ(Wrap("数数数 数", 4), "数数\n数\n数") << "wide characters take two";
  EXPECT_EQ(Wrap("", 4), "");
  EXPECT_EQ(Wrap("abcd    ", 4), "abcd") << "no line of nothing";
  EXPECT_EQ(Wrap("         ", 4), "");
  EXPECT_EQ(Wrap("      abc", 4), "\nabc");
}

TEST(TableTest, CellsAreEscaped) {
  Table table({{"error"}});
  table.AddRow({"bad\x1b[2J\nline"});
  EXPECT_EQ(table.Render(kPlain), "error\nbad\\x1b[2J\\nline\n");
}

TEST(JsonTest, DoublesReadBackBitForBit) {
  for (double value : {1421.0 / 2000, 0.1 + 0.2, 1e-3 / 3, 5e-324, -0.0, 1.7976931348623157e308}) {
    const Json read = Json::parse(ToJson({{"x", value}}));
    EXPECT_EQ(std::bit_cast<std::uint64_t>(read["x"].get<double>()),
              std::bit_cast<std::uint64_t>(value));
    const std::string csv = ToCsv({"x"}, Json::array({{{"x", value}}}));
    EXPECT_EQ(std::bit_cast<std::uint64_t>(std::strtod(csv.c_str() + 3, nullptr)),
              std::bit_cast<std::uint64_t>(value));
  }
}

TEST(JsonTest, OneValueWhateverTheData) {
  EXPECT_EQ(Json::parse(ToJson({{"x", "\xff\x1b"}}))["x"], "\xEF\xBF\xBD\x1b");
  EXPECT_EQ(ToJson({{"x", std::nan("")}}, /*one_line=*/true), "{\"x\":null}\n");
}

TEST(CsvTest, FollowsRfc4180) {
  const Json rows = Json::array({{{"a", "x,y"}, {"b", "say \"hi\""}, {"c", nullptr}},
                                 {{"a", "line\nbreak"}, {"b", 9007199254740991}, {"d", true}}});
  EXPECT_EQ(
      ToCsv({"a", "b", "c", "d"}, rows),
      "a,b,c,d\r\n\"x,y\",\"say \"\"hi\"\"\",,\r\n\"line\nbreak\",9007199254740991,,true\r\n");
}

TEST(CsvTest, MembersComeInAnyOrder) {
  const Json rows = Json::array({{{"a", 1}, {"b", 2}, {"c", 3}}, {{"c", 3}, {"b", 2}, {"a", 1}}});
  EXPECT_EQ(ToCsv({"a", "c"}, rows), "a,c\r\n1,3\r\n1,3\r\n");
  EXPECT_EQ(ToCsv({"c", "a", "x", "b"}, rows), "c,a,x,b\r\n3,1,,2\r\n3,1,,2\r\n");
}

TEST(PlotTest, Golden) {
  const Series rising{"rope", {{0, 0.0}, {1, 0.5}, {2, 1.0}}};
  const Series flat{"nope", {{0, 0.25}, {2, 0.25}}};
  EXPECT_EQ(LinePlot({rising, flat}, {"test accuracy", "epoch", 5}, {.color = false, .width = 40}),
            "test accuracy\n"
            "   1.0000 ┤                         oooo\n"
            "          │                  ooooooo\n"
            "          │           ooooooo\n"
            "          │xxxxoooooooxxxxxxxxxxxxxxxxxx\n"
            "   0.0000 ┤oooo\n"
            "          └─────────────────────────────\n"
            "           0           epoch           2\n"
            "           o  1.0000  rope\n"
            "           x  0.2500  nope\n");
}

// The band covers the row of the line and one row to each side, since a half-width of 0.25 is one
// row of this axis.
TEST(PlotTest, ABandWithinTheRangeOfTheLines) {
  const Series rising{"rope", {{0, 0.0}, {2, 1.0}}, {0.25, 0.25}};
  EXPECT_EQ(LinePlot({rising}, {"test accuracy", "epoch", 5}, {.color = false, .width = 40}),
            "test accuracy\n"
            "   1.0000 ┤                  ·······oooo\n"
            "          │           ·······ooooooo····\n"
            "          │    ·······ooooooo·······\n"
            "          │····ooooooo·······\n"
            "   0.0000 ┤oooo·······\n"
            "          └─────────────────────────────\n"
            "           0           epoch           2\n"
            "           o  1.0000  rope\n"
            "           · 95% interval of the mean over seeds\n");
  const Series one_seed{"rope", {{0, 0.0}, {2, 1.0}}, {NAN, NAN}};
  EXPECT_THAT(LinePlot({one_seed}, {"t", "epoch", 5}, kPlain), Not(HasSubstr("·")));
  const std::vector<Series> four(4, rising);
  EXPECT_THAT(LinePlot(four, {"t", "epoch", 5}, kPlain), Not(HasSubstr("·"))) << "too many to see";
}

TEST(PlotTest, ColorsOnlyWhereAskedFor) {
  const Series series{"rope", {{0, 0.0}, {1, 1.0}}};
  EXPECT_THAT(LinePlot({series}, {"t", "epoch"}, kPlain), Not(HasSubstr("\x1b")));
  EXPECT_THAT(LinePlot({series}, {"t", "epoch"}, kColor), HasSubstr("\x1b[32mo"));
}

TEST(PlotTest, EveryLineFitsTheTerminal) {
  std::vector<Series> many;
  for (int i = 0; i < 11; ++i) many.push_back({std::string(200, 'n'), {{0, i * 1.0}, {99, 1e7}}});
  const std::string plot = LinePlot(many, {"t", "epoch"}, kPlain);
  std::size_t start = 0;
  for (std::size_t end; (end = plot.find('\n', start)) != std::string::npos; start = end + 1) {
    EXPECT_LE(DisplayWidth(plot.substr(start, end - start)), 80);
  }
  EXPECT_THAT(plot, HasSubstr("and 3 more that are not drawn"));
}

TEST(PlotTest, OnePointAndEscapes) {
  const std::string plot = LinePlot({{"a\x1b", {{3, 0.5}}}}, {"t", "epoch"}, kPlain);
  EXPECT_THAT(plot, HasSubstr("o"));
  EXPECT_THAT(plot, HasSubstr("a\\x1b"));
}

HeatMap SampleMap() { return {"drops", 2, 3, {0.4, 0.0, -0.01, 0.123, std::nan(""), 0.0004}}; }

TEST(HeatMapTest, Golden) {
  EXPECT_EQ(HeatMapText(SampleMap(), kPlain),
            "drops\n"
            "head          0      1      2\n"
            "layer 0    40.0    0.0   -1.0\n"
            "layer 1    12.3      -    0.0\n");
}

TEST(HeatMapTest, ColoredGolden) {
  HeatMap map{"drops", 1, 2, {0.4, 0.0}};
  EXPECT_EQ(HeatMapText(map, kColor),
            "\x1b[1mdrops\x1b[0m\n"
            "head          0      1\n"
            "layer 0  \x1b[38;5;231;48;5;160m  40.0 \x1b[0m\x1b[38;5;16;48;5;231m   0.0 \x1b[0m\n");
}

TEST(HeatMapTest, MutedEntriesAndOtherUnits) {
  HeatMap map{.title = "loss",
              .layers = 1,
              .heads = 3,
              .values = {0.25, 0.004, 1.5},
              .muted = {false, true, false},
              .factor = 1,
              .decimals = 3};
  EXPECT_EQ(HeatMapText(map, kPlain),
            "loss\n"
            "head          0      1      2\n"
            "layer 0   0.250  0.004? 1.500\n");
  EXPECT_THAT(HeatMapText(map, kColor), HasSubstr("\x1b[2m 0.004?\x1b[0m"));
  map.columns = "rank";
  map.first = 1;
  EXPECT_THAT(HeatMapText(map, kPlain), HasSubstr("rank          1      2      3\n"));
}

TEST(HeatMapTest, HeadsThatDoNotFitGoOnBelow) {
  HeatMap map{"wide", 1, 16, std::vector<double>(16, 0.01)};
  const std::string text = HeatMapText(map, kPlain);
  EXPECT_THAT(text, HasSubstr("head         10"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 5);
}

}  // namespace
}  // namespace pelab::render
