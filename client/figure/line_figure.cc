#include "client/figure/line_figure.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "client/figure/ink.h"
#include "core/base/strings.h"
#include "core/render/text.h"

namespace pelab::client {
namespace {

constexpr char kGrid[] = "#e6eaef";
constexpr double kOnePanelWidth = 330, kPanelWidth = 250, kPanelHeight = 190;
// margins around a panel's axes
constexpr double kLeftMargin = 46, kRightMargin = 10, kTopMargin = 20, kBottomMargin = 34;
constexpr double kLegendLine = 13, kSwatch = 26;
constexpr std::size_t kMarkers = 8;  // at most so many markers per series

struct Scales {
  Scale x, y;
};

Scales ScalesOf(const LineFigure& figure) {
  double low = figure.percent ? 0 : std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity(), last = 0;
  for (const LinePanel& panel : figure.panels) {
    for (const LineSeries& series : panel.series) {
      for (std::size_t i = 0; i < series.x.size(); ++i) {
        const double half = std::isfinite(series.half_widths[i]) ? series.half_widths[i] : 0;
        low = std::min(low, series.mean[i] - half);
        high = std::max(high, series.mean[i] + half);
        last = std::max(last, series.x[i]);
      }
    }
  }
  if (!(low <= high)) low = 0, high = 1;
  if (figure.percent)
    low = 0, high = std::min(high, 1.0);  // intervals of few seeds can exceed 100 %
  Scales scales{.x = RoundScale(0, std::max(last, 1.0), 6), .y = RoundScale(low, high, 5)};
  scales.x.step = std::max(scales.x.step, 1.0);
  scales.x.high = std::max(last, 1.0);
  return scales;
}

std::string TickText(double value, double step, bool percent) {
  if (percent) return render::Fixed(100 * value, 100 * step < 1 ? 1 : 0) + " %";
  const int decimals = std::max(0, static_cast<int>(std::ceil(-std::log10(step) - 1e-9)));
  return render::Fixed(value, decimals);
}

// The axes of a panel; At gives the position of a value on the page.
struct Frame {
  double x, y, width, height;
  Scales scales;
  Point At(double vx, double vy) const {
    return {x + width * (vx - scales.x.low) / (scales.x.high - scales.x.low),
            y + height * (1 - (vy - scales.y.low) / (scales.y.high - scales.y.low))};
  }
};

std::vector<double> TicksOf(const Scale& scale) {
  const double steps = std::floor((scale.high - scale.low) / scale.step + 0.001);
  std::vector<double> ticks(static_cast<std::size_t>(steps) + 1);
  for (std::size_t i = 0; i < ticks.size(); ++i) {
    ticks[i] = scale.low + static_cast<double>(i) * scale.step;
  }
  return ticks;
}

void DrawAxes(Canvas& canvas, const LineFigure& figure, const Frame& frame) {
  const Scale& x = frame.scales.x;
  const Scale& y = frame.scales.y;
  for (const double tick : TicksOf(y)) {
    const double at = frame.At(0, tick).y;
    canvas.Line({{frame.x, at}, {frame.x + frame.width, at}}, {.color = kGrid, .width = 0.6});
    canvas.Text(frame.x - 4, at + 2.7, TickText(tick, y.step, figure.percent), kInk - 0.5,
                Anchor::kRight, kMuted);
  }
  for (const double tick : TicksOf(x)) {
    const double at = frame.At(tick, 0).x, bottom = frame.y + frame.height;
    canvas.Line({{at, bottom}, {at, bottom + 3}}, {.color = kMuted, .width = 0.6});
    canvas.Text(at, bottom + 11, TickText(tick, x.step, false), kInk - 0.5, Anchor::kMiddle,
                kMuted);
  }
  canvas.Line({{frame.x, frame.y},
               {frame.x, frame.y + frame.height},
               {frame.x + frame.width, frame.y + frame.height}},
              {.color = kMuted, .width = 0.8});
  canvas.Text(frame.x + frame.width / 2, frame.y + frame.height + 23, figure.x_label, kInk,
              Anchor::kMiddle, kText);
  canvas.VerticalText(frame.x - 36, frame.y + frame.height / 2, figure.y_label, kInk, kText);
}

// Draws a band for each run of points that have an interval.
void DrawBand(Canvas& canvas, const Frame& frame, const LineSeries& series) {
  for (std::size_t from = 0; from < series.x.size(); ++from) {
    std::size_t to = from;
    std::vector<Point> outline;
    while (to < series.x.size() && std::isfinite(series.half_widths[to])) {
      outline.push_back(frame.At(series.x[to], series.mean[to] + series.half_widths[to]));
      ++to;
    }
    for (std::size_t i = to; i > from; --i) {
      outline.push_back(frame.At(series.x[i - 1], series.mean[i - 1] - series.half_widths[i - 1]));
    }
    if (outline.size() > 2) canvas.FillPolygon(outline, series.look.color, 0.16);
    from = to;
  }
}

std::vector<double> Half(const std::vector<double>& dash) {  // from line width 2 to 1.2
  std::vector<double> halved = dash;
  for (double& length : halved) length *= 0.6;
  return halved;
}

void DrawSeries(Canvas& canvas, const Frame& frame, const LineSeries& series) {
  std::vector<Point> points;
  for (std::size_t i = 0; i < series.x.size(); ++i) {
    points.push_back(frame.At(series.x[i], series.mean[i]));
  }
  const Stroke stroke{.color = series.look.color, .width = 1.2, .dash = Half(series.look.dash)};
  canvas.Line(points, stroke);
  if (!series.look.varied && points.size() > 1) return;
  const std::size_t step = std::max<std::size_t>(1, (points.size() + kMarkers - 1) / kMarkers);
  for (std::size_t i = 0; i < points.size(); i += step) {
    canvas.Marker(points[i], 4.5, series.look.marker, series.look.color);
  }
}

// Each label once, in the order of the panels.
std::vector<const LineSeries*> LegendOf(const LineFigure& figure) {
  std::vector<const LineSeries*> legend;
  for (const LinePanel& panel : figure.panels) {
    for (const LineSeries& series : panel.series) {
      const auto same = [&](const LineSeries* known) { return known->label == series.label; };
      if (std::none_of(legend.begin(), legend.end(), same)) legend.push_back(&series);
    }
  }
  return legend;
}

// Lays out the legend entries in lines; returns the height. Without `draw` it only measures.
double LayLegend(Canvas& canvas, const std::vector<const LineSeries*>& legend, double y,
                 double width, bool draw) {
  double x = kMargin, line = 0;
  for (const LineSeries* series : legend) {
    const std::string label = canvas.Fitted(series->label, kInk, width - kSwatch - 3 * kMargin);
    const double needs = kSwatch + canvas.TextWidth(label, kInk) + 16;
    if (x > kMargin && x + needs > width) x = kMargin, line += kLegendLine;
    if (draw) {
      const double middle = y + line + kLegendLine / 2;
      canvas.Line({{x, middle}, {x + kSwatch - 5, middle}},
                  {.color = series->look.color, .width = 1.4, .dash = Half(series->look.dash)});
      if (series->look.varied) {
        canvas.Marker({x + (kSwatch - 5) / 2, middle}, 4.5, series->look.marker,
                      series->look.color);
      }
      canvas.Text(x + kSwatch, middle + 2.8, label, kInk, Anchor::kLeft, kText);
    }
    x += needs;
  }
  return line + kLegendLine;
}

}  // namespace

Scale RoundScale(double low, double high, int ticks) {
  if (high - low < 1e-12) high = low + (low == 0 ? 1 : std::abs(low));
  const double rough = (high - low) / ticks, power = std::pow(10, std::floor(std::log10(rough)));
  const double share = rough / power;
  const double step = power * (share <= 1 ? 1 : share <= 2 ? 2 : share <= 5 ? 5 : 10);
  return {.low = std::floor(low / step + 1e-9) * step,
          .high = std::ceil(high / step - 1e-9) * step,
          .step = step};
}

absl::StatusOr<std::string> DrawLines(const LineFigure& figure, Vector form) {
  const std::size_t columns =
      std::min<std::size_t>(2, std::max<std::size_t>(1, figure.panels.size()));
  const std::size_t rows = (figure.panels.size() + columns - 1) / columns;
  const double panel_width = columns == 1 ? kOnePanelWidth : kPanelWidth;
  const double width = static_cast<double>(columns) * panel_width;
  const std::vector<const LineSeries*> legend = LegendOf(figure);
  double legend_height = 0;  // known only after the texts are measured
  const auto measured = DrawPage(form, {width, 10}, figure.title, [&](Canvas& canvas) {
    legend_height = LayLegend(canvas, legend, 0, width, /*draw=*/false);
  });
  if (!measured.ok()) return measured.status();
  const double panels_height = static_cast<double>(rows) * kPanelHeight;
  const PageSize size{width, panels_height + legend_height + kMargin};
  return DrawPage(form, size, figure.title, [&](Canvas& canvas) {
    const Scales scales = ScalesOf(figure);
    for (std::size_t i = 0; i < figure.panels.size(); ++i) {
      const LinePanel& panel = figure.panels[i];
      const std::size_t row = i / columns;
      const Frame frame{.x = static_cast<double>(i % columns) * panel_width + kLeftMargin,
                        .y = static_cast<double>(row) * kPanelHeight + kTopMargin,
                        .width = panel_width - kLeftMargin - kRightMargin,
                        .height = kPanelHeight - kTopMargin - kBottomMargin,
                        .scales = scales};
      canvas.Text(frame.x, frame.y - 7, canvas.Fitted(panel.title, kInk + 1, frame.width, true),
                  kInk + 1, Anchor::kLeft, kText, true);
      DrawAxes(canvas, figure, frame);
      canvas.Clipped(frame.x, frame.y - 3, frame.width + 3, frame.height + 3, [&] {
        for (const LineSeries& series : panel.series) DrawBand(canvas, frame, series);
        for (const LineSeries& series : panel.series) DrawSeries(canvas, frame, series);
      });
    }
    LayLegend(canvas, legend, panels_height, width, /*draw=*/true);
  });
}

}  // namespace pelab::client
