// Line plots and heat maps in text. Pure functions: thread-safe.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "client/terminal/style.h"

namespace pelab::render {

struct Series {
  std::string label;
  std::vector<std::pair<double, double>> points;  // by x, ascending; finite
  // Empty, or for each point how far its interval goes to each side; NaN where there is none.
  std::vector<double> half_widths;
};

struct PlotOptions {
  std::string title;
  std::string x_label;
  int height = 14;  // lines of the plotting area
};

inline constexpr std::size_t kMaxSeries = 8;  // how many marks there are

// The series as lines over one pair of axes, each with a mark of its own (and colour), named in a
// legend below with its last value; up to three within the band of their intervals (dots), as far
// as the lines' own range shows it. Draws the first kMaxSeries and says how many it leaves out.
// Where lines meet, the earlier series wins.
std::string LinePlot(const std::vector<Series>& series, const PlotOptions& options,
                     const Style& style);

struct HeatMap {
  std::string title;
  int layers = 0;
  int heads = 0;
  std::vector<double> values;  // layers x heads, row-major; NaN: not there
  std::vector<bool> muted;     // the same shape, or empty: marked with "?", without colour
  double factor = 100;         // from values to what is shown: points
  int decimals = 1;
  std::string columns = "head";  // what the columns are
  int first = 0;                 // number of the first one
};

// A line a layer and a column a head; on a terminal with
// colour the background deepens from no drop to the map's largest (or to `scale`, for maps that are
// to be compared, where it is above 0). Heads that do not fit beside each other go on below.
std::string HeatMapText(const HeatMap& map, const Style& style, double scale = 0);

// Values of several lines along one axis.
struct Strips {
  std::string title;
  struct Strip {
    std::string label;           // "layer 0"
    std::vector<double> values;  // finite
  };
  std::vector<Strip> strips;
  double factor = 100;  // from values to what is shown: points
  int decimals = 1;
};

// A line a strip: "o" where one value is, the digit where two to nine fall together, "#" for more,
// "|" at zero; the largest value at the end. The axis is the same for all and holds zero.
std::string StripPlot(const Strips& strips, const Style& style);

}  // namespace pelab::render
