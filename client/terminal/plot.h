// Line plots and heat maps as text. Pure functions: thread-safe.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "client/terminal/style.h"

namespace pelab::render {

struct Series {
  std::string label;
  std::vector<std::pair<double, double>> points;  // ascending x; finite
  // Empty, or the half-width of each point's interval; NaN for a point without one.
  std::vector<double> half_widths;
};

struct PlotOptions {
  std::string title;
  std::string x_label;
  int height = 14;  // height of the plotting area, in lines
};

inline constexpr std::size_t kMaxSeries = 8;  // the number of marks

// Draws the series as lines over one pair of axes, each with its own mark (and color). A legend
// below names them with their last values. Up to three series also show their intervals as bands of
// dots, within the range of the lines. Only the first kMaxSeries are drawn; a line says how many
// are missing. The earlier series wins where lines cross.
std::string LinePlot(const std::vector<Series>& series, const PlotOptions& options,
                     const Style& style);

struct HeatMap {
  std::string title;
  int layers = 0;
  int heads = 0;
  std::vector<double> values;  // layers x heads, row-major; NaN: no such entry
  std::vector<bool> muted;     // the same shape, or empty; true: marked with "?", without color
  double factor = 100;         // from stored values to displayed ones: points
  int decimals = 1;
  std::string columns = "head";  // the header of the columns
  int first = 0;                 // the number of the first column
};

// One line per layer, one column per head. With color, the background is deepest at the map's
// largest absolute value or, if `scale` is above 0, at that stored value, so that maps can be
// compared. Heads that do not fit side by side continue below.
std::string HeatMapText(const HeatMap& map, const Style& style, double scale = 0);

// Values of several lines along one common axis.
struct Strips {
  std::string title;
  struct Strip {
    std::string label;           // "layer 0"
    std::vector<double> values;  // finite
  };
  std::vector<Strip> strips;
  double factor = 100;  // from stored values to displayed ones: points
  int decimals = 1;
};

// One line per strip: "o" for one value, a digit where two to nine values coincide, "#" for more,
// "|" at zero, and the largest value at the end. All strips share one axis, which includes zero.
std::string StripPlot(const Strips& strips, const Style& style);

}  // namespace pelab::render
