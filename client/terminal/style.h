// How to draw: what the place where it appears can show. A value.
#pragma once

#include <string>
#include <string_view>

namespace pelab::render {

struct Style {
  bool color = false;
  int width = 80;   // columns
  int height = 24;  // lines
};

// The style of standard output: colour only on a terminal and neither with NO_COLOR nor with
// TERM=dumb; as wide as the environment variable COLUMNS asks for (40 to 400), else as the terminal
// is, 80 x 24 where that is not known.
Style StyleOfStdout();

// `text` between an SGR sequence ("1" bold, "32" green, "2" dim) and its end; plain without colour.
std::string Paint(const Style& style, std::string_view sgr, std::string_view text);

}  // namespace pelab::render
