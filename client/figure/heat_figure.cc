#include "client/figure/heat_figure.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>

#include "client/figure/ink.h"
#include "core/base/strings.h"
#include "core/render/text.h"

namespace pelab::client {
namespace {

constexpr char kGap[] = "#c9d0d8";
// The diverging colors of core/pages/style/base.css.
constexpr char kLow[] = "#2166ac";
constexpr char kMiddle[] = "#f7f7f7";
constexpr char kHigh[] = "#b2182b";
constexpr double kLine = 10;
constexpr double kPageWidth = 500, kAxis = 30, kMapGap = 20, kBarWidth = 120;
constexpr double kRow = 17;                     // height of a layer's row
constexpr double kWidestCell = 26, kRoom = 15;  // cells at least kRoom wide show their number

int Channel(const std::string& color, std::size_t at) {
  return static_cast<int>(std::strtol(color.substr(1 + 2 * at, 2).c_str(), nullptr, 16));
}

// The color for `share`, from -1 (kLow) through 0 (kMiddle) to 1 (kHigh).
std::string Diverging(double share) {
  const std::string end = share < 0 ? kLow : kHigh, middle = kMiddle;
  const double part = std::min(1.0, std::abs(share));
  char text[8];
  int mixed[3];
  for (std::size_t i = 0; i < 3; ++i) {
    mixed[i] = static_cast<int>(
        std::lround(Channel(middle, i) + part * (Channel(end, i) - Channel(middle, i))));
  }
  std::snprintf(text, sizeof(text), "#%02x%02x%02x", mixed[0], mixed[1], mixed[2]);
  return text;
}

// The scale runs from minus this limit to plus this limit, in displayed units.
double LimitOf(const HeatFigure& figure) {
  double limit = 0;
  for (const render::HeatMap& map : figure.maps) {
    for (std::size_t at = 0; at < map.values.size(); ++at) {
      const bool muted = at < map.muted.size() && map.muted[at];
      if (std::isfinite(map.values[at]) && !muted) {
        limit = std::max(limit, std::abs(map.values[at] * map.factor));
      }
    }
  }
  return limit > 0 ? limit : 1;
}

double CellWidth(const render::HeatMap& map, double width) {
  return std::min(kWidestCell, (width - kAxis) / std::max(1, map.heads));
}

// Writes "-0.0" as "0.0".
std::string FigureText(double value, int decimals) {
  const std::string text = render::Fixed(value, decimals);
  const bool zero = text.find_first_not_of("-0.") == std::string::npos;
  return zero && text.starts_with('-') ? text.substr(1) : text;
}

void DrawCell(Canvas& canvas, const render::HeatMap& map, std::size_t at, const Point& corner,
              double width, double limit) {
  const double value = map.values[at] * map.factor;
  const bool muted = at < map.muted.size() && map.muted[at];
  const Point middle{corner.x + width / 2, corner.y + kRow / 2 + 2.6};
  if (!std::isfinite(value)) {
    canvas.FillRectangle(corner.x, corner.y, width - 0.8, kRow - 0.8, kGap);
    canvas.Text(middle.x, middle.y, "×", kInk - 0.5, Anchor::kMiddle, kMuted);
    return;
  }
  const double share = muted ? 0 : value / limit;
  canvas.FillRectangle(corner.x, corner.y, width - 0.8, kRow - 0.8, Diverging(share));
  if (width < kRoom || muted) return;
  const std::string text = FigureText(value, std::abs(value) >= 9.95 ? 0 : map.decimals);
  canvas.Text(middle.x, middle.y, text, width < 20 ? kInk - 2 : kInk - 1, Anchor::kMiddle,
              std::abs(share) > 0.6 ? "#ffffff" : kText);
}

std::vector<std::string> TitleLines(Canvas& canvas, const std::string& title, double width) {
  std::vector<std::string> lines;
  const std::string text = render::Escape(title);
  const int columns = static_cast<int>(width / (canvas.TextWidth("n", kInk) * 0.95));
  std::string wrapped = render::Wrap(text, std::max(20, columns));
  for (std::size_t from = 0; from <= wrapped.size();) {
    const std::size_t end = std::min(wrapped.find('\n', from), wrapped.size());
    lines.push_back(canvas.Fitted(wrapped.substr(from, end - from), kInk, width));
    from = end + 1;
  }
  return lines;
}

// The horizontal position of a map on the page.
struct MapColumn {
  double x = kMargin;
  double width = kPageWidth - 2 * kMargin;
};

// Lays out one map at `y` and returns its lower end. Without `draw` it only measures.
double LayMap(Canvas& canvas, const render::HeatMap& map, const MapColumn& column, double y,
              double limit, bool draw) {
  for (const std::string& line : TitleLines(canvas, map.title, column.width)) {
    y += kLine;
    if (draw) canvas.Text(column.x, y, line, kInk, Anchor::kLeft, kText);
  }
  y += 6;
  const double cell = CellWidth(map, column.width), left = column.x + kAxis;
  for (int layer = 0; draw && layer < map.layers; ++layer) {
    const double top = y + layer * kRow;
    canvas.Text(left - 5, top + kRow / 2 + 2.6, Concat(layer), kInk - 0.5, Anchor::kRight, kMuted);
    for (int head = 0; head < map.heads; ++head) {
      DrawCell(canvas, map, static_cast<std::size_t>(layer) * map.heads + head,
               {left + head * cell, top}, cell, limit);
    }
  }
  if (draw) {
    const int step = std::max(1, static_cast<int>(std::ceil(12 / cell)));
    for (int head = 0; head < map.heads; head += step) {
      canvas.Text(left + (head + 0.5) * cell, y + map.layers * kRow + 8, Concat(head + map.first),
                  kInk - 0.5, Anchor::kMiddle, kMuted);
    }
    canvas.Text(left + map.heads * cell / 2, y + map.layers * kRow + 18, map.columns, kInk,
                Anchor::kMiddle, kText);
    canvas.VerticalText(column.x + 8, y + map.layers * kRow / 2, "layer", kInk, kText);
  }
  return y + map.layers * kRow + kMapGap;
}

// Lays out all maps, two side by side if they are small. Returns the lower end of the last one.
double LayMaps(Canvas& canvas, const HeatFigure& figure, double limit, bool draw) {
  constexpr double kHalf = kPageWidth / 2 - 2 * kMargin;
  const bool small = std::all_of(figure.maps.begin(), figure.maps.end(), [](const auto& map) {
    return kAxis + map.heads * kWidestCell <= kHalf;
  });
  const std::size_t columns = small && figure.maps.size() > 1 ? 2 : 1;
  double y = 0;
  for (std::size_t first = 0; first < figure.maps.size(); first += columns) {
    double end = y;
    for (std::size_t i = first; i < std::min(first + columns, figure.maps.size()); ++i) {
      MapColumn column;
      if (columns == 2) {
        column = {kMargin + static_cast<double>(i - first) * kPageWidth / 2, kHalf};
      }
      end = std::max(end, LayMap(canvas, figure.maps[i], column, y, limit, draw));
    }
    y = end + kMargin;
  }
  return y;
}

void DrawBar(Canvas& canvas, const HeatFigure& figure, double y, double limit) {
  constexpr int kSteps = 60;
  const double left = kMargin + kAxis;
  for (int i = 0; i < kSteps; ++i) {
    canvas.FillRectangle(left + kBarWidth * i / kSteps, y, kBarWidth / kSteps + 0.3, 7,
                         Diverging(2.0 * i / (kSteps - 1) - 1));
  }
  const int decimals = limit >= 10 ? 0 : limit >= 1 ? 1 : 3;
  canvas.Text(left, y + 16, render::Fixed(-limit, decimals), kInk - 0.5, Anchor::kMiddle, kMuted);
  canvas.Text(left + kBarWidth / 2, y + 16, "0", kInk - 0.5, Anchor::kMiddle, kMuted);
  canvas.Text(left + kBarWidth, y + 16, render::Fixed(limit, decimals), kInk - 0.5, Anchor::kMiddle,
              kMuted);
  canvas.Text(left + kBarWidth + 20, y + 7, figure.unit, kInk, Anchor::kLeft, kText);
}

}  // namespace

absl::StatusOr<std::string> DrawHeatMaps(const HeatFigure& figure, Vector form) {
  const double limit = LimitOf(figure);
  double end = 0;
  const auto measured = DrawPage(form, {kPageWidth, 10}, figure.title, [&](Canvas& canvas) {
    end = LayMaps(canvas, figure, limit, /*draw=*/false);
  });
  if (!measured.ok()) return measured.status();
  return DrawPage(form, {kPageWidth, end + 28}, figure.title, [&](Canvas& canvas) {
    LayMaps(canvas, figure, limit, /*draw=*/true);
    DrawBar(canvas, figure, end + 4, limit);
  });
}

}  // namespace pelab::client
