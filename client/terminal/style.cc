#include "client/terminal/style.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <system_error>

namespace pelab::render {
namespace {

constexpr int kMinWidth = 40;
constexpr int kMaxWidth = 400;

bool IsSet(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

int Within(int width) { return width < kMaxWidth ? width : kMaxWidth; }

// The width that COLUMNS requests; 0 if it is not a number of at least 40.
int AskedWidth() {
  const char* value = std::getenv("COLUMNS");
  if (value == nullptr) return 0;
  int width = 0;
  const char* end = value + std::strlen(value);
  const auto [rest, error] = std::from_chars(value, end, width);
  return error == std::errc() && rest == end && width >= kMinWidth ? Within(width) : 0;
}

}  // namespace

Style StyleOfStdout() {
  Style style;
  const int asked = AskedWidth();
  if (asked > 0) style.width = asked;
  if (isatty(STDOUT_FILENO) == 0) return style;
  const char* term = std::getenv("TERM");
  const bool dumb = term == nullptr || std::string_view(term) == "dumb";
  style.color = !dumb && !IsSet("NO_COLOR");
  winsize size = {};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= kMinWidth) {
    if (asked == 0) style.width = Within(size.ws_col);
    if (size.ws_row > 0) style.height = size.ws_row;
  }
  return style;
}

std::string Paint(const Style& style, std::string_view sgr, std::string_view text) {
  if (!style.color || text.empty()) return std::string(text);
  std::string out = "\x1b[";
  out += sgr;
  out += 'm';
  out += text;
  out += "\x1b[0m";
  return out;
}

}  // namespace pelab::render
