// Lines over epochs for a paper: panels side by side, bands for intervals, one legend. Pure
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
  std::vector<double> half_widths;  // of the 95 % interval; NaN for none
};

struct LinePanel {
  std::string title;
  std::vector<LineSeries> series;
};

struct LineFigure {
  std::string title;
  std::string x_label;
  std::string y_label;
  bool percent = false;  // y are fractions, shown in percent from 0 to at most 100
  std::vector<LinePanel> panels;
};

// Ends of an axis and the steps between its ticks.
struct Scale {
  double low = 0;
  double high = 1;
  double step = 0.2;
};
// Round numbers around [low, high], with about `ticks` steps. low <= high, both finite.
Scale RoundScale(double low, double high, int ticks);

absl::StatusOr<std::string> DrawLines(const LineFigure& figure, Vector form);

// For LaTeX: a tikzpicture with pgfplots, and above it the packages that it needs.
std::string LinesAsPgfplots(const LineFigure& figure);

}  // namespace pelab::client
