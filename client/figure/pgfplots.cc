// Line figures as LaTeX with pgfplots.
#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "client/figure/line_figure.h"
#include "client/figure/paper_table.h"
#include "core/base/strings.h"
#include "core/render/text.h"

namespace pelab::client {
namespace {

// The pgfplots names of the markers in core/pages/style/looks.json.
const std::map<std::string, std::string>& Marks() {
  static const auto& marks = *new std::map<std::string, std::string>{
      {"circle", "*"},
      {"square", "square*"},
      {"diamond", "diamond*"},
      {"triangle-up", "triangle*"},
      {"triangle-down", "triangle*, mark options={rotate=180,solid}"},
      {"cross", "+"},
      {"x", "x"}};
  return marks;
}

std::string DashOf(const Look& look) {
  if (look.dash.empty()) return "solid";
  std::string pattern = "dash pattern=";
  for (std::size_t i = 0; i < look.dash.size(); ++i) {
    pattern += Concat(i == 0 ? "" : " ", i % 2 == 0 ? "on " : "off ",
                      render::Shortest(look.dash[i] / 2), "pt");
  }
  return pattern;
}

// A color is named after its code: "pelab0072b2".
std::string ColorName(const Look& look) { return Concat("pelab", look.color.substr(1)); }

std::string Definitions(const LineFigure& figure) {
  std::string text;
  std::map<std::string, std::string> colors;
  for (const LinePanel& panel : figure.panels) {
    for (const LineSeries& series : panel.series) {
      colors[ColorName(series.look)] = series.look.color.substr(1);
    }
  }
  for (const auto& [name, code] : colors) {
    std::string upper = code;
    std::transform(upper.begin(), upper.end(), upper.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    text += Concat("\\definecolor{", name, "}{HTML}{", upper, "}\n");
  }
  return text;
}

// The interval band as one closed line; empty unless every point has an interval.
std::string Band(const LineSeries& series, double factor) {
  std::string there, back;
  for (std::size_t i = 0; i < series.x.size(); ++i) {
    const double half = series.half_widths[i];
    if (!std::isfinite(half)) return "";
    const std::string x = render::Shortest(series.x[i]);
    there += Concat(" (", x, ",", render::Shortest(factor * (series.mean[i] + half)), ")");
    back.insert(0, Concat(" (", x, ",", render::Shortest(factor * (series.mean[i] - half)), ")"));
  }
  if (series.x.size() < 2) return "";
  return Concat("  \\addplot[draw=none, fill=", ColorName(series.look),
                ", fill opacity=0.16, forget plot] coordinates {", there, back, " } -- cycle;\n");
}

std::string Line(const LineSeries& series, double factor) {
  const std::string mark =
      series.look.varied || series.x.size() < 2
          ? Concat("mark=", Marks().at(series.look.marker),
                   ", mark repeat=", (series.x.size() + 7) / 8, ", mark size=1.5pt")
          : std::string("no markers");
  std::string text = Concat("  \\addplot[", ColorName(series.look), ", thick, ",
                            DashOf(series.look), ", ", mark, "] coordinates {");
  for (std::size_t i = 0; i < series.x.size(); ++i) {
    text += Concat(" (", render::Shortest(series.x[i]), ",",
                   render::Shortest(factor * series.mean[i]), ")");
  }
  return Concat(text, " };\n  \\addlegendentry{", LatexText(series.label), "}\n");
}

}  // namespace

std::string LinesAsPgfplots(const LineFigure& figure) {
  const double factor = figure.percent ? 100 : 1;
  std::string text = Concat(
      "% needs \\usepackage{pgfplots} and \\pgfplotsset{compat=1.16}\n"
      "% lines are means over seeds, bands their 95 % intervals\n",
      Definitions(figure));
  for (const LinePanel& panel : figure.panels) {
    text += Concat("\\begin{tikzpicture}\n\\begin{axis}[\n  title={", LatexText(panel.title),
                   "}, xlabel={", LatexText(figure.x_label), "}, ylabel={",
                   LatexText(figure.y_label), figure.percent ? " (\\%)" : "", "},\n",
                   figure.percent ? "  ymin=0, restrict y to domain*=0:100,\n" : "",
                   "  width=0.48\\textwidth, height=0.36\\textwidth, grid=major, "
                   "grid style={gray!20},\n"
                   "  legend style={font=\\footnotesize, draw=none, fill=none}, "
                   "legend pos=outer north east, legend cell align=left]\n");
    for (const LineSeries& series : panel.series) text += Band(series, factor);
    for (const LineSeries& series : panel.series) text += Line(series, factor);
    text += "\\end{axis}\n\\end{tikzpicture}\n";
  }
  return text;
}

}  // namespace pelab::client
