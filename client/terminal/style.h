// Style: what the output device can display. A value type.
#pragma once

#include <string>
#include <string_view>

namespace pelab::render {

struct Style {
  bool color = false;
  int width = 80;   // columns
  int height = 24;  // lines
};

// The style of standard output. Color only on a terminal, and not with NO_COLOR or TERM=dumb. The
// width is the environment variable COLUMNS (40 to 400), else the terminal's width; 80 x 24 if that
// is unknown.
Style StyleOfStdout();

// Puts `text` between an SGR sequence ("1" bold, "32" green, "2" dim) and its reset; returns it
// unchanged without color.
std::string Paint(const Style& style, std::string_view sgr, std::string_view text);

}  // namespace pelab::render
