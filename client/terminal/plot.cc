#include "client/terminal/plot.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "core/base/strings.h"
#include "core/render/text.h"

namespace pelab::render {
namespace {

constexpr const char* kMarks[kMaxSeries] = {"o", "x", "+", "*", "#", "@", "%", "&"};
constexpr const char* kColors[kMaxSeries] = {"32", "34", "31", "33", "35", "36", "92", "94"};
constexpr std::size_t kMostBands = 3;  // more bands would hide each other
constexpr int kAxisWidth = 9;          // "  0.7012 "
constexpr int kLabelEvery = 4;         // lines between labels of the y axis

struct Range {
  double low = 0;
  double high = 1;
  double At(double fraction) const { return low + (high - low) * fraction; }
  double FractionOf(double value) const { return (value - low) / (high - low); }
};

double HalfWidth(const Series& s, std::ptrdiff_t point) {
  const auto at = static_cast<std::size_t>(point);
  if (at >= s.half_widths.size() || std::isnan(s.half_widths[at])) return 0;
  return s.half_widths[at];
}

Range RangeOf(const std::vector<Series>& series, bool of_x) {
  bool any = false;
  Range range;
  for (const Series& s : series) {
    for (const auto& point : s.points) {
      const double value = of_x ? point.first : point.second;
      range.low = any ? std::min(range.low, value) : value;
      range.high = any ? std::max(range.high, value) : value;
      any = true;
    }
  }
  if (range.high <= range.low) {  // a single value: put it in the middle
    const double room = of_x ? 0.5 : std::max(std::fabs(range.low) * 0.05, 1e-3);
    range.low -= room;
    range.high += room;
  }
  return range;
}

// The plotting area: the series index of each character, -1 for none.
class Canvas {
 public:
  Canvas(int width, int height)
      : width_(width),
        height_(height),
        owner_(static_cast<std::size_t>(width) * height, -1),
        band_(owner_.size(), false) {}
  int width() const { return width_; }
  int height() const { return height_; }
  int At(int column, int row) const { return owner_[row * width_ + column]; }
  // Whether the character belongs to a band, not to a line.
  bool IsBand(int column, int row) const { return band_[row * width_ + column]; }

  // Call it before Draw: lines cover bands. LinePlot draws the last series first, so the earlier
  // one is on top.
  void DrawBand(const Series& s, int index, const Range& x, const Range& y) {
    if (s.half_widths.empty()) return;
    for (std::size_t i = 0; i < s.points.size(); ++i) {
      const std::size_t next = std::min(i + 1, s.points.size() - 1);
      const double from = Column(s.points[i].first, x), to = Column(s.points[next].first, x);
      const int steps = std::max(1, static_cast<int>(std::ceil(to - from)));
      for (int step = 0; step < steps; ++step) {
        const double t = static_cast<double>(step) / steps;
        const double middle = Between(s.points[i].second, s.points[next].second, t);
        const double room = Between(HalfWidth(s, static_cast<std::ptrdiff_t>(i)),
                                    HalfWidth(s, static_cast<std::ptrdiff_t>(next)), t);
        const int top = std::max(0, static_cast<int>(std::lround(Row(middle + room, y))));
        const int bottom =
            std::min(height_ - 1, static_cast<int>(std::lround(Row(middle - room, y))));
        for (int row = top; room > 0 && row <= bottom; ++row) {
          Mark(from + t * (to - from), row, index, /*band=*/true);
        }
      }
    }
  }

  void Draw(const Series& s, int index, const Range& x, const Range& y) {
    for (std::size_t i = 0; i < s.points.size(); ++i) {
      const double from_x = Column(s.points[i].first, x), from_y = Row(s.points[i].second, y);
      Mark(from_x, from_y, index);
      if (i + 1 == s.points.size()) break;
      const double to_x = Column(s.points[i + 1].first, x), to_y = Row(s.points[i + 1].second, y);
      const int steps = static_cast<int>(std::ceil(std::fabs(to_x - from_x)));
      for (int step = 1; step < steps; ++step) {
        const double t = static_cast<double>(step) / steps;
        Mark(from_x + t * (to_x - from_x), from_y + t * (to_y - from_y), index);
      }
    }
  }

 private:
  double Column(double value, const Range& x) const { return x.FractionOf(value) * (width_ - 1); }
  double Row(double value, const Range& y) const {
    return (1 - y.FractionOf(value)) * (height_ - 1);
  }
  static double Between(double from, double to, double t) { return from + t * (to - from); }
  void Mark(double column, double row, int index, bool band = false) {
    const auto c = std::clamp(static_cast<int>(std::lround(column)), 0, width_ - 1);
    const auto r = std::clamp(static_cast<int>(std::lround(row)), 0, height_ - 1);
    owner_[r * width_ + c] = index;
    band_[r * width_ + c] = band;
  }

  int width_;
  int height_;
  std::vector<int> owner_;
  std::vector<bool> band_;
};

std::string AreaLine(const Canvas& canvas, int row, const Style& style) {
  std::string line;
  for (int column = 0; column < canvas.width();) {
    const int index = canvas.At(column, row);
    std::string run;  // characters of one color
    for (; column < canvas.width() && canvas.At(column, row) == index; ++column) {
      run += index < 0 ? " " : canvas.IsBand(column, row) ? "·" : kMarks[index];
    }
    line += index < 0 ? run : Paint(style, kColors[index], run);
  }
  if (const auto end = line.find_last_not_of(' '); end != std::string::npos) {
    line.erase(end + 1);
  } else {
    line.clear();
  }
  return line;
}

std::string Number(double value) {
  const double size = std::fabs(value);
  if (size != 0 && (size < 1e-3 || size >= 1e6)) {
    char buffer[32];
    std::snprintf(buffer, sizeof(buffer), "%.2e", value);
    return buffer;
  }
  return Fixed(value, size >= 1000 ? 1 : 4);
}

std::string XLabels(const Range& x, int width, const std::string& name) {
  const std::string low = Shortest(std::ceil(x.low)), high = Shortest(std::floor(x.high));
  std::string line = PadRight(low, width - DisplayWidth(high)) + high;
  const int middle = (width - DisplayWidth(name)) / 2;
  if (middle > DisplayWidth(low) + 1) {
    line.replace(static_cast<std::size_t>(middle), name.size(), name);
  }
  return line;
}

}  // namespace

std::string LinePlot(const std::vector<Series>& all, const PlotOptions& options,
                     const Style& style) {
  std::vector<Series> series(all);
  series.resize(std::min(all.size(), kMaxSeries));
  const Range x = RangeOf(series, true), y = RangeOf(series, false);
  Canvas canvas(std::max(20, style.width - kAxisWidth - 2), std::max(3, options.height));
  const bool bands = series.size() <= kMostBands;
  for (std::size_t i = series.size(); bands && i-- > 0;)
    canvas.DrawBand(series[i], static_cast<int>(i), x, y);
  for (std::size_t i = series.size(); i-- > 0;) canvas.Draw(series[i], static_cast<int>(i), x, y);

  std::string out = Paint(style, "1", Wrap(Escape(options.title), style.width)) + "\n";
  for (int row = 0; row < canvas.height(); ++row) {
    const bool labeled = row % kLabelEvery == 0 || row == canvas.height() - 1;
    const double value = y.At(1 - static_cast<double>(row) / (canvas.height() - 1));
    out += PadLeft(labeled ? Number(value) : "", kAxisWidth);
    out += labeled ? " ┤" : " │";
    out += AreaLine(canvas, row, style) + "\n";
  }
  std::string rule;
  for (int i = 0; i < canvas.width(); ++i) rule += "─";
  out += std::string(kAxisWidth + 1, ' ') + "└" + rule + "\n";
  out += std::string(kAxisWidth + 2, ' ') + XLabels(x, canvas.width(), options.x_label) + "\n";
  for (std::size_t i = 0; i < series.size(); ++i) {
    const Series& s = series[i];
    const std::string last = s.points.empty() ? "no data" : Number(s.points.back().second);
    out += std::string(kAxisWidth + 2, ' ') + Paint(style, kColors[i], kMarks[i]) + " " +
           PadLeft(last, 7) + "  " + Truncate(Escape(s.label), style.width - kAxisWidth - 14) +
           "\n";
  }
  const auto has_band = [](const Series& s) {
    return std::any_of(s.half_widths.begin(), s.half_widths.end(),
                       [](double half_width) { return half_width > 0; });
  };
  if (bands && std::any_of(series.begin(), series.end(), has_band)) {
    out += Concat(std::string(kAxisWidth + 2, ' '), "· 95% interval of the mean over seeds\n");
  }
  if (all.size() > series.size()) {
    out += Concat(std::string(kAxisWidth + 2, ' '), "and ", all.size() - series.size(),
                  " more that are not drawn\n");
  }
  return out;
}

namespace {

constexpr int kLabelWidth = 9;  // "layer 12 "
constexpr int kCellWidth = 7;

// Background from the 256-color palette: white to red for a loss, white to blue for a gain.
std::string CellColor(double fraction) {
  static constexpr int kRed[] = {231, 224, 217, 210, 203, 196, 160};
  static constexpr int kBlue[] = {231, 195, 153, 117, 75, 39, 33};
  const int level = std::min(6, static_cast<int>(std::lround(std::fabs(fraction) * 6)));
  const int background = fraction >= 0 ? kRed[level] : kBlue[level];
  return Concat("38;5;", level >= 5 ? 231 : 16, ";48;5;", background);
}

std::string Cell(const HeatMap& map, std::size_t at, double scale, const Style& style) {
  const double value = map.values[at];
  if (std::isnan(value)) return PadLeft("- ", kCellWidth);
  const bool muted = !map.muted.empty() && map.muted[at];
  // A value that rounds to zero is shown as zero: "-0.0" would look like a gain.
  const double size = value * map.factor;
  const bool rounds_to_zero = std::fabs(size) < 0.5 * std::pow(10.0, -map.decimals);
  const std::string text =
      PadLeft(Fixed(rounds_to_zero ? 0 : size, map.decimals) + (muted ? "?" : " "), kCellWidth);
  if (muted) return Paint(style, "2", text);
  const double fraction = scale > 0 ? std::clamp(value / scale, -1.0, 1.0) : 0;
  return style.color ? Paint(style, CellColor(fraction), text) : text;
}

}  // namespace

std::string HeatMapText(const HeatMap& map, const Style& style, double scale) {
  if (scale <= 0) {
    for (const double value : map.values) {
      if (!std::isnan(value)) scale = std::max(scale, std::fabs(value));
    }
  }
  std::string out = Paint(style, "1", Wrap(Escape(map.title), style.width)) + "\n";
  const int per_block = std::max(1, (style.width - kLabelWidth) / kCellWidth);
  for (int first = 0; first < map.heads; first += per_block) {
    const int end = std::min(map.heads, first + per_block);
    std::string header = PadRight(map.columns, kLabelWidth);
    for (int head = first; head < end; ++head) {
      header += PadLeft(Concat(head + map.first, " "), kCellWidth);
    }
    out += header.erase(header.find_last_not_of(' ') + 1) + "\n";
    for (int layer = 0; layer < map.layers; ++layer) {
      std::string line = PadRight(Concat("layer ", layer), kLabelWidth);
      for (int head = first; head < end; ++head) {
        line += Cell(map, static_cast<std::size_t>(layer) * map.heads + head, scale, style);
      }
      out += line.erase(line.find_last_not_of(' ') + 1) + "\n";
    }
  }
  return out;
}

namespace {

constexpr int kStripFigure = 8;  // "  12.3 "

std::string StripLine(const Strips::Strip& strip, const Range& range, int width,
                      const Style& style) {
  std::vector<int> counts(static_cast<std::size_t>(width), 0);
  const auto place = [&](double value) {
    return std::clamp(static_cast<int>(std::lround(range.FractionOf(value) * (width - 1))), 0,
                      width - 1);
  };
  for (const double value : strip.values) ++counts[static_cast<std::size_t>(place(value))];
  const int zero = place(0);
  std::string line;
  for (int column = 0; column < width; ++column) {
    const int count = counts[static_cast<std::size_t>(column)];
    if (count == 0) {
      line += column == zero ? Paint(style, "2", "|") : " ";
    } else {
      line += Paint(style,
                    column > zero   ? "31"
                    : column < zero ? "34"
                                    : "2",
                    count == 1   ? "o"
                    : count <= 9 ? Concat(count)
                                 : std::string("#"));
    }
  }
  return line;
}

}  // namespace

std::string StripPlot(const Strips& strips, const Style& style) {
  Range range{0, 0};
  int label = 0;
  for (const Strips::Strip& strip : strips.strips) {
    label = std::max(label, DisplayWidth(Escape(strip.label)));
    for (const double value : strip.values) {
      range.low = std::min(range.low, value);
      range.high = std::max(range.high, value);
    }
  }
  if (range.high == range.low) range.high = range.low + 1 / strips.factor;
  const int width = std::max(20, style.width - label - 3 - kStripFigure);
  std::string out = Paint(style, "1", Wrap(Escape(strips.title), style.width)) + "\n";
  for (const Strips::Strip& strip : strips.strips) {
    const auto largest = std::max_element(strip.values.begin(), strip.values.end());
    out += Concat(
        PadRight(Escape(strip.label), label), " ", StripLine(strip, range, width, style),
        PadLeft(
            largest == strip.values.end() ? "-" : Fixed(*largest * strips.factor, strips.decimals),
            kStripFigure),
        "\n");
  }
  const std::string low = Fixed(range.low * strips.factor, strips.decimals);
  const std::string high = Fixed(range.high * strips.factor, strips.decimals);
  out += Concat(std::string(static_cast<std::size_t>(label) + 1, ' '),
                PadRight(low, width - DisplayWidth(high)), high, PadLeft("largest", kStripFigure),
                "\n");
  return out;
}

}  // namespace pelab::render
