// A page to draw on. The same calls produce SVG or PDF. Lengths are points (1/72 inch); y grows
// downwards. Not thread-safe.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

// NOLINTNEXTLINE(bugprone-reserved-identifier): cairo's own names
typedef struct _cairo cairo_t;

namespace pelab::client {

struct CairoLibrary;

enum class Anchor { kLeft, kMiddle, kRight };

struct Stroke {
  std::string color = "#000000";
  double width = 1;
  std::vector<double> dash;  // alternating lengths of strokes and gaps; empty: solid
};

struct Point {
  double x = 0;
  double y = 0;
};

class Canvas {
 public:
  Canvas(const CairoLibrary& library, cairo_t* cairo) : library_(library), cairo_(cairo) {}

  // Colors are "#rrggbb"; `alpha` ranges from 0 to 1.
  void FillRectangle(double x, double y, double width, double height, const std::string& color);
  void FillPolygon(const std::vector<Point>& corners, const std::string& color, double alpha = 1);
  void Line(const std::vector<Point>& points, const Stroke& stroke);
  // Draws one of the markers of core/pages/style/looks.json, centered on `middle`.
  void Marker(const Point& middle, double size, const std::string& name, const std::string& color);

  // `y` is the baseline. Control characters and invalid UTF-8 are escaped.
  void Text(double x, double y, const std::string& text, double size, Anchor align,
            const std::string& color = "#1a2230", bool bold = false);
  // Writes upwards, centered on (x, y).
  void VerticalText(double x, double y, const std::string& text, double size,
                    const std::string& color);
  double TextWidth(const std::string& text, double size, bool bold = false);
  // The text, cut off with "…" if it is wider than `width`.
  std::string Fitted(const std::string& text, double size, double width, bool bold = false);

  // Clips everything that `draw` draws to this rectangle.
  void Clipped(double x, double y, double width, double height, const std::function<void()>& draw);

 private:
  void SetColor(const std::string& color, double alpha = 1);
  void SetFont(double size, bool bold);
  void Path(const std::vector<Point>& points);

  const CairoLibrary& library_;
  cairo_t* cairo_;
};

enum class Vector { kSvg, kPdf };

struct PageSize {
  double width = 0;
  double height = 0;
};

// Returns the bytes of a file with one page. FAILED_PRECONDITION if this host lacks cairo; INTERNAL
// if cairo fails.
absl::StatusOr<std::string> DrawPage(Vector form, const PageSize& size, const std::string& title,
                                     const std::function<void(Canvas&)>& draw);

}  // namespace pelab::client
