#include "client/figure/canvas.h"

#include <cmath>
#include <cstdlib>
#include <memory>
#include <numbers>

#include "client/figure/cairo_library.h"
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
  library_.set_source_rgba(cairo_, Channel(color, 0), Channel(color, 1), Channel(color, 2), alpha);
}

void Canvas::SetFont(double size, bool bold) {
  library_.select_font_face(cairo_, kFont, CAIRO_FONT_SLANT_NORMAL,
                            bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
  library_.set_font_size(cairo_, size);
}

void Canvas::Path(const std::vector<Point>& points) {
  library_.new_path(cairo_);
  for (const Point& point : points) library_.line_to(cairo_, point.x, point.y);
}

void Canvas::FillRectangle(double x, double y, double width, double height,
                           const std::string& color) {
  FillPolygon({{x, y}, {x + width, y}, {x + width, y + height}, {x, y + height}}, color);
}

void Canvas::FillPolygon(const std::vector<Point>& corners, const std::string& color,
                         double alpha) {
  Path(corners);
  library_.close_path(cairo_);
  SetColor(color, alpha);
  library_.fill(cairo_);
}

void Canvas::Line(const std::vector<Point>& points, const Stroke& stroke) {
  Path(points);
  SetColor(stroke.color);
  library_.set_line_width(cairo_, stroke.width);
  library_.set_line_join(cairo_, CAIRO_LINE_JOIN_ROUND);
  library_.set_dash(cairo_, stroke.dash.data(), static_cast<int>(stroke.dash.size()), 0);
  library_.stroke(cairo_);
}

void Canvas::Marker(const Point& middle, double size, const std::string& name,
                    const std::string& color) {
  const double r = size / 2, third = r / 3;
  const auto at = [&](double x, double y) { return Point{middle.x + x, middle.y + y}; };
  if (name == "circle") {
    library_.new_path(cairo_);
    library_.arc(cairo_, middle.x, middle.y, r, 0, 2 * std::numbers::pi);
    SetColor(color);
    library_.fill(cairo_);
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
    library_.save(cairo_);
    library_.translate(cairo_, middle.x, middle.y);
    if (name == "x") library_.rotate(cairo_, std::numbers::pi / 4);
    library_.new_path(cairo_);
    library_.rectangle(cairo_, -1.1 * r, -third, 2.2 * r, 2 * third);
    library_.rectangle(cairo_, -third, -1.1 * r, 2 * third, 2.2 * r);
    SetColor(color);
    library_.fill(cairo_);
    library_.restore(cairo_);
  }
}

double Canvas::TextWidth(const std::string& text, double size, bool bold) {
  SetFont(size, bold);
  cairo_text_extents_t extents;
  library_.text_extents(cairo_, render::Escape(text).c_str(), &extents);
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
  library_.move_to(cairo_,
                   x - (align == Anchor::kLeft     ? 0
                        : align == Anchor::kMiddle ? width / 2
                                                   : width),
                   y);
  library_.show_text(cairo_, render::Escape(text).c_str());
}

void Canvas::VerticalText(double x, double y, const std::string& text, double size,
                          const std::string& color) {
  library_.save(cairo_);
  library_.translate(cairo_, x, y);
  library_.rotate(cairo_, -std::numbers::pi / 2);
  Text(0, 0, text, size, Anchor::kMiddle, color);
  library_.restore(cairo_);
}

void Canvas::Clipped(double x, double y, double width, double height,
                     const std::function<void()>& draw) {
  library_.save(cairo_);
  library_.rectangle(cairo_, x, y, width, height);
  library_.clip(cairo_);
  draw();
  library_.restore(cairo_);
}

absl::StatusOr<std::string> DrawPage(Vector form, const PageSize& size, const std::string& title,
                                     const std::function<void(Canvas&)>& draw) {
  absl::StatusOr<const CairoLibrary*> loaded = LoadCairo();
  if (!loaded.ok()) return loaded.status();
  const CairoLibrary& library = **loaded;
  std::string bytes;
  using Surface = std::unique_ptr<cairo_surface_t, decltype(library.surface_destroy)>;
  const Surface surface(
      form == Vector::kSvg
          ? library.svg_surface_create_for_stream(&Append, &bytes, size.width, size.height)
          : library.pdf_surface_create_for_stream(&Append, &bytes, size.width, size.height),
      library.surface_destroy);
  if (form == Vector::kPdf) {
    // pdflatex warns of figures newer than 1.5, which cairo 1.18 would write.
    library.pdf_surface_restrict_to_version(surface.get(), CAIRO_PDF_VERSION_1_4);
    library.pdf_surface_set_metadata(surface.get(), CAIRO_PDF_METADATA_TITLE,
                                     render::Escape(title).c_str());
    library.pdf_surface_set_metadata(surface.get(), CAIRO_PDF_METADATA_CREATOR,
                                     "pelab " PELAB_VERSION);
  }
  const auto failure = [&](cairo_status_t status) {
    return absl::InternalError(Concat("cairo: ", library.status_to_string(status)));
  };
  {
    const std::unique_ptr<cairo_t, decltype(library.destroy)> cairo(library.create(surface.get()),
                                                                    library.destroy);
    Canvas canvas(library, cairo.get());
    draw(canvas);
    library.show_page(cairo.get());
    const cairo_status_t status = library.status(cairo.get());
    if (status != CAIRO_STATUS_SUCCESS) return failure(status);
  }
  library.surface_finish(surface.get());
  const cairo_status_t status = library.surface_status(surface.get());
  if (status != CAIRO_STATUS_SUCCESS) return failure(status);
  return bytes;
}

}  // namespace pelab::client
