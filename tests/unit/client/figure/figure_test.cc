// Figures and tables for a paper.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <regex>
#include <set>
#include <sstream>

#include "client/figure/paper.h"
#include "core/catalog/catalog.h"
#include "tests/unit/core/results/cells_fixture.h"
#include "tests/unit/core/results/jobs_fixture.h"

namespace pelab::client {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

LineSeries Series(const std::string& label, const std::string& color) {
  return {.label = label,
          .look = {.color = color, .dash = {}, .marker = "circle", .varied = false},
          .x = {0, 1, 2, 3},
          .mean = {0.1, 0.3, 0.4, 0.9},
          .half_widths = {0.01, 0.02, 0.03, 0.04}};
}

// The SVG with colors as cairo 1.16 writes them; 1.18 has attributes in place of styles.
std::string WithStyles(const std::string& svg) {
  const std::string attributes = std::regex_replace(svg, std::regex(R"(\b(fill|stroke)=")"), "$1:");
  return std::regex_replace(attributes, std::regex("%, "), "%,");
}

// The points of the first stroked path of this color ("rgb(0%,…" in cairo's output).
std::vector<Point> PathOf(const std::string& svg, const std::string& stroke) {
  const std::regex path("<path [^>]*>");
  for (std::sregex_iterator it(svg.begin(), svg.end(), path), end; it != end; ++it) {
    const std::string element = it->str();
    if (element.find("fill:none") == std::string::npos || element.find(stroke) == std::string::npos)
      continue;
    const std::size_t from = element.find(" d=\"") + 4;
    std::istringstream words(element.substr(from, element.find('"', from) - from));
    std::vector<Point> points;
    std::string command;
    Point point;
    while (words >> command >> point.x >> point.y) points.push_back(point);
    return points;
  }
  return {};
}

TEST(Looks, AnEncodingHasOneColorAndItsVariantsDashes) {
  const results::CellTable cells = Cells(
      {MakeJob(1, "nope", 0, kDone, 1, "0.001"), MakeJob(2, "rope", 0, kDone, 1, "0.001"),
       MakeJob(3, "rope", 0, kDone, 1, "0.003"), MakeJob(4, "own idea", 0, kDone, 1, "0.001")});
  const Looks looks(cells);
  const Look nope = looks.Of(cells.cells[0]), rope = looks.Of(cells.cells[1]),
             other = looks.Of(cells.cells[2]), own = looks.Of(cells.cells[3]);
  EXPECT_EQ(rope.color, "#0072b2");
  EXPECT_EQ(nope.color, "#d55e00");
  EXPECT_EQ(other.color, rope.color);
  EXPECT_NE(other.dash, rope.dash);
  EXPECT_NE(other.marker, rope.marker);
  EXPECT_EQ(nope.dash, rope.dash);
  EXPECT_TRUE(rope.varied);
  EXPECT_EQ((std::set<std::string>{nope.color, rope.color, own.color}).size(), 3U);
  // Drawn alone, it looks the same.
  const results::CellTable alone = Cells({MakeJob(2, "rope", 0, kDone, 1, "0.001")});
  EXPECT_EQ(Looks(alone).Of(alone.cells[0]).color, rope.color);
  EXPECT_FALSE(Looks(alone).Of(alone.cells[0]).varied);
}

TEST(Looks, EveryEncodingOfTheCatalogHasAColorOfItsOwn) {
  std::vector<v1::JobRow> jobs;
  for (const catalog::Entry& pe : catalog::Pes()) {
    jobs.push_back(
        MakeJob(static_cast<std::int64_t>(jobs.size()) + 1, std::string(pe.name), 0, kDone, 1));
  }
  const results::CellTable cells = Cells(jobs);
  const Looks looks(cells);
  std::set<std::string> colors;
  for (const results::Cell& cell : cells.cells) colors.insert(looks.Of(cell).color);
  EXPECT_EQ(colors.size(), catalog::Pes().size());
}

TEST(RoundScale, HasRoundEndsAroundTheValues) {
  const Scale scale = RoundScale(0.13, 0.92, 5);
  EXPECT_DOUBLE_EQ(scale.step, 0.2);
  EXPECT_DOUBLE_EQ(scale.low, 0);
  EXPECT_DOUBLE_EQ(scale.high, 1.0);
  const Scale flat = RoundScale(2, 2, 5);
  EXPECT_LT(flat.low, flat.high);
}

TEST(LineFigure, DrawsEveryPointWhereItBelongs) {
  const LineFigure figure{.title = "t",
                          .x_label = "epoch",
                          .y_label = "y",
                          .percent = true,
                          .panels = {{"distance", {Series("rope", "#0072b2")}}}};
  const auto svg = DrawLines(figure, Vector::kSvg);
  ASSERT_TRUE(svg.ok()) << svg.status();
  EXPECT_THAT(*svg, StartsWith("<?xml"));
  const std::vector<Point> points = PathOf(WithStyles(*svg), "stroke:rgb(0%,44.70");
  ASSERT_EQ(points.size(), 4U);
  const double per_epoch = points[1].x - points[0].x;
  const double per_unit = (points[0].y - points[1].y) / 0.2;
  EXPECT_GT(per_epoch, 20);
  EXPECT_GT(per_unit, 50);
  const std::vector<double> mean = {0.1, 0.3, 0.4, 0.9};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(points[i].x, points[0].x + static_cast<double>(i) * per_epoch, 0.01);
    EXPECT_NEAR(points[i].y, points[0].y - per_unit * (mean[i] - 0.1), 0.01);
  }
}

TEST(LineFigure, AsPdfHasOnePageAndItsFonts) {
  const LineFigure figure{.title = "t",
                          .x_label = "epoch",
                          .y_label = "y",
                          .percent = false,
                          .panels = {{"a", {Series("rope", "#0072b2")}},
                                     {"b", {Series("nope", "#d55e00")}},
                                     {"c", {Series("nope", "#d55e00")}}}};
  const auto pdf = DrawLines(figure, Vector::kPdf);
  ASSERT_TRUE(pdf.ok()) << pdf.status();
  EXPECT_THAT(*pdf, StartsWith("%PDF-"));
  EXPECT_THAT(*pdf, HasSubstr("/Count 1"));
  EXPECT_THAT(*pdf, HasSubstr("/FontFile"));
}

TEST(LineFigure, HostileLabelsAreText) {
  LineFigure figure{.title = "</svg>",
                    .x_label = "epoch",
                    .y_label = "y",
                    .percent = false,
                    .panels = {{"<script>", {Series("\xFF\x1b[31m<b>& $x_1^2$ %", "#0072b2")}}}};
  const auto svg = DrawLines(figure, Vector::kSvg);
  ASSERT_TRUE(svg.ok());
  EXPECT_EQ(svg->find("<script"), std::string::npos);
  const std::string tex = LinesAsPgfplots(figure);
  EXPECT_THAT(tex,
              HasSubstr("\\textless{}b\\textgreater{}\\& \\$x\\_1\\textasciicircum{}2\\$ \\%"));
}

TEST(LineFigure, AsPgfplotsHasEveryPoint) {
  LineFigure figure{.title = "t",
                    .x_label = "epoch",
                    .y_label = "test accuracy",
                    .percent = true,
                    .panels = {{"distance", {Series("rope", "#0072b2")}}}};
  figure.panels[0].series[0].look.dash = {8, 4};
  const std::string tex = LinesAsPgfplots(figure);
  EXPECT_THAT(tex, HasSubstr("\\definecolor{pelab0072b2}{HTML}{0072B2}"));
  EXPECT_THAT(tex, HasSubstr("dash pattern=on 4pt off 2pt"));
  EXPECT_THAT(tex, HasSubstr("coordinates { (0,10) (1,30) (2,40) (3,90) };"));
  EXPECT_THAT(tex, HasSubstr("\\addlegendentry{rope}"));
  EXPECT_EQ(std::count(tex.begin(), tex.end(), '{'), std::count(tex.begin(), tex.end(), '}'));
}

AblationMap MapOf(std::vector<double> values, std::vector<bool> muted) {
  return {.map = {.title = "rope distance: accuracy lost",
                  .layers = 2,
                  .heads = 2,
                  .values = std::move(values),
                  .muted = std::move(muted)}};
}

TEST(HeatFigure, ColorsEveryHead) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  const AblationMap map = MapOf({0.5, 0.01, -0.1, none}, {false, true, false, false});
  const auto svg = DrawHeatMaps(AblationFigure({map}, "job 1"), Vector::kSvg);
  ASSERT_TRUE(svg.ok()) << svg.status();
  // 0.5 is the end of the scale: #b2182b, red 178 / 255.
  EXPECT_THAT(WithStyles(*svg), HasSubstr("fill:rgb(69.80"));
  EXPECT_THAT(WithStyles(*svg), HasSubstr("fill:rgb(78.82"));  // the color of the gap, #c9d0d8
  EXPECT_THAT(*DrawHeatMaps(AblationFigure({map}, "job 1"), Vector::kPdf), StartsWith("%PDF-"));
}

// Ranks are no heads: rank 1 is another head in each seed.
TEST(HeatFigure, NamesItsColumnsAsTheMapDoes) {
  HeatFigure figure = AblationFigure({MapOf({0.5, 0.1, 0.2, 0.1}, {})}, "job 1");
  const auto heads = DrawHeatMaps(figure, Vector::kSvg);
  figure.maps[0].columns = "rank";
  figure.maps[0].first = 1;
  const auto ranks = DrawHeatMaps(figure, Vector::kSvg);
  ASSERT_TRUE(heads.ok() && ranks.ok());
  EXPECT_NE(*heads, *ranks);
}

TEST(AblationTable, SaysWhatItsSignsMean) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  const PaperTable table =
      AblationTable(MapOf({0.5, 0.01, -0.1, none}, {false, true, false, false}));
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_THAT(table.rows[0], ::testing::ElementsAre("0", "50.0", "1.0?"));
  EXPECT_THAT(table.rows[1], ::testing::ElementsAre("1", "-10.0", "-"));
  EXPECT_EQ(table.notes.size(), 2U);
}

TEST(ResultsTable, IsInPercentWithItsMarksExplained) {
  const PaperTable table = ResultsTable(
      Cells({MakeJob(1, "nope", 0, kDone, 300), MakeJob(2, "nope", 1, kDone, 400),
             MakeJob(3, "rope", 0, kDone, 700), MakeJob(4, "rope", 1, v1::JOB_STATE_FAILED, 0)}));
  const std::string markdown = ToMarkdown(table);
  EXPECT_EQ(
      markdown,
      "test accuracy, means over seeds\n\n"
      "| encoding | task     | test accuracy (%) |      interval |   n |\n"
      "| -------- | -------- | ----------------: | ------------: | --: |\n"
      "| nope     | distance |             35.00 | 0.00 to 98.53 | 2/2 |\n"
      "| rope     | distance |           70.00\\* |             - | 1/2 |\n\n"
      "Interval: 95 %, of the mean over seeds, by Student's t. n: seeds in the mean, of all.\n\n"
      "\\*: not every seed of this group has a result.\n");
  const std::string latex = ToLatex(table);
  EXPECT_THAT(latex, HasSubstr("\\begin{tabular}{llrrr}\n    \\toprule\n    encoding & task & test "
                               "accuracy (\\%) & interval & n \\\\\n    \\midrule\n"));
  EXPECT_THAT(latex, HasSubstr("    nope & distance & 35.00 & 0.00 to 98.53 & 2/2 \\\\\n"));
  EXPECT_THAT(latex, HasSubstr("    \\bottomrule\n  \\end{tabular}\n"));
  EXPECT_THAT(latex, HasSubstr("*: not every seed"));
}

TEST(PaperTable, EscapesWhatLatexAndMarkdownRead) {
  const PaperTable table{
      .caption = "a_b", .columns = {{"x|y"}, {"z", true}}, .rows = {{"50 % & \\more", "-1.5"}}};
  EXPECT_THAT(ToLatex(table), HasSubstr("50 \\% \\& \\textbackslash{}more & $-$1.5 \\\\"));
  EXPECT_THAT(ToLatex(table), HasSubstr("\\caption{a\\_b}"));
  EXPECT_THAT(ToMarkdown(table), HasSubstr("| x\\|y"));
}

TEST(Outputs, AreDecidedByCommand) {
  EXPECT_TRUE(CheckOutput("curves", "svg").ok());
  EXPECT_TRUE(CheckOutput("results", "latex").ok());
  EXPECT_TRUE(CheckOutput("jobs", "csv").ok());
  const absl::Status jobs = CheckOutput("jobs", "svg");
  EXPECT_EQ(jobs.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(jobs.message(),
            "--output svg: pelab jobs gives table, json, jsonl or csv; svg is for pelab curves and "
            "pelab ablation");
  EXPECT_FALSE(CheckOutput("results", "pdf").ok());
  EXPECT_EQ(OutputHelp(OutputsOf("results")),
            "table, json, jsonl (a row a line), csv, latex or markdown [default: table]");
  EXPECT_EQ(OutputHelp(OutputsOf("jobs")),
            "table, json, jsonl (a row a line) or csv [default: table]");
}

}  // namespace
}  // namespace pelab::client
