#include "client/figure/canvas.h"

#include <cairo-pdf.h>
#include <cairo-svg.h>
#include <cairo.h>

#include <cmath>
#include <cstdlib>
#include <memory>
#include <numbers>

#include "core/base/strings.h"
#include "core/render/text.h"

namespace pelab::client {
namespace {

constexpr char kFont[] = "sans-serif";

double Channel(const std::string& color, std::size_t at) {
  return static_cast<double>(std::strtol(color.substr(1 + 2 * at, 2).c_str(), nullptr, 16)) / 255;
}

cairo_status_t Append(void* bytes, const unsigned char* data, unsigned int length) {
  static_cast<std::string*>(bytes)->append(reinterpret_cast<const char*>(data), length);
  return CAIRO_STATUS_SUCCESS;
}

}  // namespace

void Canvas::SetColor(const std::string& color, double alpha) {
  cairo_set_source_rgba(cairo_, Channel(color, 0), Channel(color, 1), Channel(color, 2), alpha);
}

void Canvas::SetFont(double size, bool bold) {
  cairo_select_font_face(cairo_, kFont, CAIRO_FONT_SLANT_NORMAL,
                         bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
  cairo_set_font_size(cairo_, size);
}

void Canvas::Path(const std::vector<Point>& points) {
  cairo_new_path(cairo_);
  for (const Point& point : points) cairo_line_to(cairo_, point.x, point.y);
}

void Canvas::FillRectangle(double x, double y, double width, double height,
                           const std::string& color) {
  FillPolygon({{x, y}, {x + width, y}, {x + width, y + height}, {x, y + height}}, color);
}

void Canvas::FillPolygon(const std::vector<Point>& corners, const std::string& color,
                         double alpha) {
  Path(corners);
  cairo_close_path(cairo_);
  SetColor(color, alpha);
  cairo_fill(cairo_);
}

void Canvas::Line(const std::vector<Point>& points, const Stroke& stroke) {
  Path(points);
  SetColor(stroke.color);
  cairo_set_line_width(cairo_, stroke.width);
  cairo_set_line_join(cairo_, CAIRO_LINE_JOIN_ROUND);
  cairo_set_dash(cairo_, stroke.dash.data(), static_cast<int>(stroke.dash.size()), 0);
  cairo_stroke(cairo_);
}

void Canvas::Marker(const Point& middle, double size, const std::string& name,
                    const std::string& color) {
  const double r = size / 2, third = r / 3;
  const auto at = [&](double x, double y) { return Point{middle.x + x, middle.y + y}; };
  if (name == "circle") {
    cairo_new_path(cairo_);
    cairo_arc(cairo_, middle.x, middle.y, r, 0, 2 * std::numbers::pi);
    SetColor(color);
    cairo_fill(cairo_);
  } else if (name == "square") {
    FillRectangle(middle.x - 0.9 * r, middle.y - 0.9 * r, 1.8 * r, 1.8 * r, color);
  } else if (name == "diamond") {
    const double d = 1.2 * r;
    FillPolygon({at(0, -d), at(d, 0), at(0, d), at(-d, 0)}, color);
  } else if (name == "triangle-up") {
    FillPolygon({at(0, -1.1 * r), at(1.1 * r, 0.9 * r), at(-1.1 * r, 0.9 * r)}, color);
  } else if (name == "triangle-down") {
    FillPolygon({at(0, 1.1 * r), at(1.1 * r, -0.9 * r), at(-1.1 * r, -0.9 * r)}, color);
  } else {  // cross and x: a plus sign, upright or turned by 45 degrees
    cairo_save(cairo_);
    cairo_translate(cairo_, middle.x, middle.y);
    if (name == "x") cairo_rotate(cairo_, std::numbers::pi / 4);
    cairo_new_path(cairo_);
    cairo_rectangle(cairo_, -1.1 * r, -third, 2.2 * r, 2 * third);
    cairo_rectangle(cairo_, -third, -1.1 * r, 2 * third, 2.2 * r);
    SetColor(color);
    cairo_fill(cairo_);
    cairo_restore(cairo_);
  }
}

double Canvas::TextWidth(const std::string& text, double size, bool bold) {
  SetFont(size, bold);
  cairo_text_extents_t extents;
  cairo_text_extents(cairo_, render::Escape(text).c_str(), &extents);
  return extents.x_advance;
}

std::string Canvas::Fitted(const std::string& text, double size, double width, bool bold) {
  std::string fitted = render::Escape(text);
  for (int columns = render::DisplayWidth(fitted);
       columns > 1 && TextWidth(fitted, size, bold) > width; --columns) {
    fitted = render::Truncate(fitted, columns - 1);
  }
  return fitted;
}

void Canvas::Text(double x, double y, const std::string& text, double size, Anchor align,
                  const std::string& color, bool bold) {
  const double width = TextWidth(text, size, bold);
  SetColor(color);
  cairo_move_to(cairo_,
                x - (align == Anchor::kLeft     ? 0
                     : align == Anchor::kMiddle ? width / 2
                                                : width),
                y);
  cairo_show_text(cairo_, render::Escape(text).c_str());
}

void Canvas::VerticalText(double x, double y, const std::string& text, double size,
                          const std::string& color) {
  cairo_save(cairo_);
  cairo_translate(cairo_, x, y);
  cairo_rotate(cairo_, -std::numbers::pi / 2);
  Text(0, 0, text, size, Anchor::kMiddle, color);
  cairo_restore(cairo_);
}

void Canvas::Clipped(double x, double y, double width, double height,
                     const std::function<void()>& draw) {
  cairo_save(cairo_);
  cairo_rectangle(cairo_, x, y, width, height);
  cairo_clip(cairo_);
  draw();
  cairo_restore(cairo_);
}

absl::StatusOr<std::string> DrawPage(Vector form, const PageSize& size, const std::string& title,
                                     const std::function<void(Canvas&)>& draw) {
  std::string bytes;
  using Surface = std::unique_ptr<cairo_surface_t, decltype(&cairo_surface_destroy)>;
  const Surface surface(
      form == Vector::kSvg
          ? cairo_svg_surface_create_for_stream(&Append, &bytes, size.width, size.height)
          : cairo_pdf_surface_create_for_stream(&Append, &bytes, size.width, size.height),
      &cairo_surface_destroy);
  if (form == Vector::kPdf) {
    // pdflatex warns of figures newer than 1.5, which cairo 1.18 would write.
    cairo_pdf_surface_restrict_to_version(surface.get(), CAIRO_PDF_VERSION_1_4);
    cairo_pdf_surface_set_metadata(surface.get(), CAIRO_PDF_METADATA_TITLE,
                                   render::Escape(title).c_str());
    cairo_pdf_surface_set_metadata(surface.get(), CAIRO_PDF_METADATA_CREATOR,
                                   "pelab " PELAB_VERSION);
  }
  {
    const std::unique_ptr<cairo_t, decltype(&cairo_destroy)> cairo(cairo_create(surface.get()),
                                                                   &cairo_destroy);
    Canvas canvas(cairo.get());
    draw(canvas);
    cairo_show_page(cairo.get());
    if (const cairo_status_t status = cairo_status(cairo.get()); status != CAIRO_STATUS_SUCCESS) {
      return absl::InternalError(Concat("cairo: ", cairo_status_to_string(status)));
    }
  }
  cairo_surface_finish(surface.get());
  const cairo_status_t status = cairo_surface_status(surface.get());
  if (status != CAIRO_STATUS_SUCCESS) {
    return absl::InternalError(Concat("cairo: ", cairo_status_to_string(status)));
  }
  return bytes;
}

}  // namespace pelab::client
