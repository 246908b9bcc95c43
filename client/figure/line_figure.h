// Line figures over epochs for papers: panels in two columns, bands for intervals, one legend. Pure
// functions: thread-safe.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/figure/canvas.h"
#include "client/figure/looks.h"

namespace pelab::client {

struct LineSeries {
  std::string label;
  Look look;
  std::vector<double> x;
  std::vector<double> mean;
  std::vector<double> half_widths;  // of the 95 % interval; NaN if there is none
};

struct LinePanel {
  std::string title;
  std::vector<LineSeries> series;
};

struct LineFigure {
  std::string title;
  std::string x_label;
  std::string y_label;
  bool percent = false;  // y values are fractions, shown in percent from 0 to at most 100
  std::vector<LinePanel> panels;
};

// The ends of an axis and the step between its ticks.
struct Scale {
  double low = 0;
  double high = 1;
  double step = 0.2;
};
// Round numbers around [low, high] with about `ticks` steps. Requires low <= high, both finite.
Scale RoundScale(double low, double high, int ticks);

absl::StatusOr<std::string> DrawLines(const LineFigure& figure, Vector form);

// The figure as LaTeX: one tikzpicture with pgfplots per panel, and above them a comment that names
// the required package.
std::string LinesAsPgfplots(const LineFigure& figure);

}  // namespace pelab::client
