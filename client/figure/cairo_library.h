// The functions of cairo that figures call. The library is loaded when the first figure is drawn:
// with the 17 libraries that it needs in turn, those of X11 among them, it would take a tenth of
// the start of every command, and `pelab` runs on hosts that lack it. Only canvas.cc includes this.
#pragma once

#include <cairo-pdf.h>
#include <cairo-svg.h>
#include <cairo.h>

#include "absl/status/statusor.h"

namespace pelab::client {

// The names without "cairo_".
// clang-format off
#define PELAB_CAIRO_FUNCTIONS(each)                                                               \
  each(arc) each(clip) each(close_path) each(create) each(destroy) each(fill) each(line_to)       \
  each(move_to) each(new_path) each(pdf_surface_create_for_stream)                                \
  each(pdf_surface_restrict_to_version) each(pdf_surface_set_metadata) each(rectangle)            \
  each(restore) each(rotate) each(save) each(select_font_face) each(set_dash)                     \
  each(set_font_size) each(set_line_join) each(set_line_width) each(set_source_rgba)              \
  each(show_page) each(show_text) each(status) each(status_to_string) each(stroke)                \
  each(surface_destroy) each(surface_finish) each(surface_status)                                 \
  each(svg_surface_create_for_stream) each(text_extents) each(translate)
// clang-format on

struct CairoLibrary {
// NOLINTNEXTLINE(bugprone-macro-parentheses): a name that is declared has none
#define PELAB_DECLARE(name) decltype(&cairo_##name) name = nullptr;
  PELAB_CAIRO_FUNCTIONS(PELAB_DECLARE)
#undef PELAB_DECLARE
};

// Loads the library at the first call. FAILED_PRECONDITION if this host lacks it. Thread-safe.
absl::StatusOr<const CairoLibrary*> LoadCairo();

}  // namespace pelab::client
