#include "core/render/text.h"

#include <utf8proc.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <ctime>

#include "core/base/utf8.h"

namespace pelab::render {
namespace {

// The columns of one character. A byte that is not UTF-8 takes one column.
int WidthOf(Utf8Character c) {
  return c.valid ? utf8proc_charwidth(static_cast<utf8proc_int32_t>(c.value)) : 1;
}

// The length of an SGR sequence ("\x1b[1;32m") at the start of the text, otherwise 0.
std::size_t SgrLength(std::string_view text) {
  if (!text.starts_with("\x1b[")) return 0;
  const std::size_t end = text.find_first_not_of("0123456789;", 2);
  return end != std::string_view::npos && text[end] == 'm' ? end + 1 : 0;
}

// The number of bytes at the start of the text that `markup` allows although they are control
// characters.
std::size_t AllowedBytes(std::string_view text, Markup markup) {
  if (text.front() == '\n' || text.front() == '\t') return 1;
  if (markup == Markup::kCsv && text.starts_with("\r\n")) return 2;
  return markup == Markup::kColored ? SgrLength(text) : 0;
}

}  // namespace

std::string Displayable(std::string_view text, Markup markup) {
  if (markup == Markup::kJson) return EscapeJson(text);
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Utf8Character c = FirstCharacter(text);
    if (c.valid && !IsUnsafeToShow(c.value)) {
      out += text.substr(0, c.bytes);
      text.remove_prefix(c.bytes);
      continue;
    }
    const std::size_t allowed = AllowedBytes(text, markup);
    out += allowed > 0 ? std::string(text.substr(0, allowed)) : Escape(text.substr(0, c.bytes));
    text.remove_prefix(std::max(allowed, c.bytes));
  }
  return out;
}

int DisplayWidth(std::string_view text) {
  int width = 0;
  while (!text.empty()) {
    if (const std::size_t sgr = SgrLength(text); sgr > 0) {
      text.remove_prefix(sgr);
      continue;
    }
    const Utf8Character c = FirstCharacter(text);
    width += WidthOf(c);
    text.remove_prefix(c.bytes);
  }
  return width;
}

namespace {

// The number of bytes of the first characters of the text that fit into `width` columns.
std::size_t BytesThatFit(std::string_view text, int width) {
  std::size_t bytes = 0;
  while (bytes < text.size()) {
    const Utf8Character c = FirstCharacter(text.substr(bytes));
    width -= WidthOf(c);
    if (width < 0) break;
    bytes += c.bytes;
  }
  return bytes;
}

}  // namespace

std::string Truncate(std::string_view text, int width) {
  if (DisplayWidth(text) <= width) return std::string(text);
  if (width <= 0) return "";
  return std::string(text.substr(0, BytesThatFit(text, width - 1))) + "…";
}

std::string TruncateMiddle(std::string_view text, int width) {
  const int all = DisplayWidth(text);
  if (all <= width) return std::string(text);
  if (width <= 0) return "";
  const int end = (width - 1) / 3;
  std::string_view last = text.substr(BytesThatFit(text, all - end));
  // A wide character across the cut is left out.
  while (DisplayWidth(last) > end) last.remove_prefix(FirstCharacter(last).bytes);
  last.remove_prefix(BytesThatFit(last, 0));  // marks of that character
  std::string out(text.substr(0, BytesThatFit(text, width - 1 - end)));
  return out.append("…").append(last);
}

namespace {

// The number of bytes of a word up to its best place for a break: after "_", ",", "/" or "-", or
// before "(" or "[".
std::size_t PartOf(std::string_view word) {
  for (std::size_t i = 1; i < word.size(); ++i) {
    const char before = word[i - 1];
    if (before == '_' || before == ',' || before == '/' || before == '-') return i;
    if (word[i] == '(' || word[i] == '[') return i;
  }
  return word.size();
}

}  // namespace

std::string Wrap(std::string_view text, int width) {
  std::string out;
  int used = 0;  // columns used in the last line
  const auto break_line = [&] {
    out.erase(out.find_last_not_of(' ') + 1);
    out += '\n';
    used = 0;
  };
  while (!text.empty()) {
    const std::size_t spaces = std::min(text.find_first_not_of(' '), text.size());
    const std::size_t end = std::min(text.find(' ', spaces), text.size());
    const std::string_view word = text.substr(spaces, end - spaces);
    if (word.empty()) break;
    const int gap = static_cast<int>(spaces);
    if (used > 0 && used + gap + DisplayWidth(word) > width) {
      break_line();
    } else {
      out.append(spaces, ' ');
      used += gap;
    }
    for (std::string_view rest = word; !rest.empty();) {
      std::string_view part = rest.substr(0, PartOf(rest));
      rest.remove_prefix(part.size());
      if (used > 0 && used + DisplayWidth(part) > width) break_line();
      while (!part.empty()) {
        const Utf8Character c = FirstCharacter(part);
        const int columns = WidthOf(c);
        if (used > 0 && used + columns > width) break_line();
        out += part.substr(0, c.bytes);
        used += columns;
        part.remove_prefix(c.bytes);
      }
    }
    text.remove_prefix(end);
  }
  return out;
}

std::string PadRight(std::string_view text, int width) {
  return std::string(text) + std::string(std::max(0, width - DisplayWidth(text)), ' ');
}

std::string PadLeft(std::string_view text, int width) {
  return std::string(std::max(0, width - DisplayWidth(text)), ' ') + std::string(text);
}

std::string Fixed(std::optional<double> value, int decimals) {
  if (!value) return "-";
  char buffer[400];
  std::snprintf(buffer, sizeof(buffer), "%.*f", decimals, *value);
  return buffer;
}

std::string Probability(double p) {
  char text[32];
  std::snprintf(text, sizeof(text), p < 0.001 ? "%.1e" : "%.3f", p);
  return text;
}

std::string Shortest(double value) {
  std::string text;
  AppendShortest(value, text);
  return text;
}

void AppendShortest(double value, std::string& out) {
  char buffer[40];
  out.append(buffer, std::to_chars(buffer, buffer + sizeof(buffer), value).ptr);
}

void AppendShortest(std::int64_t value, std::string& out) {
  char buffer[24];
  out.append(buffer, std::to_chars(buffer, buffer + sizeof(buffer), value).ptr);
}

std::string Counted(std::int64_t count, std::string_view what) {
  return std::to_string(count).append(" ").append(what).append(count == 1 ? "" : "s");
}

std::string FormatSeconds(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "?";
  char buffer[64];
  if (seconds < 9.95) {
    std::snprintf(buffer, sizeof(buffer), "%.1fs", seconds);
    return buffer;
  }
  const auto whole = static_cast<long long>(std::llround(std::min(seconds, 1e15)));
  if (whole < 60) {
    std::snprintf(buffer, sizeof(buffer), "%llds", whole);
  } else if (whole < 3600) {
    std::snprintf(buffer, sizeof(buffer), "%lldm%02llds", whole / 60, whole % 60);
  } else {
    std::snprintf(buffer, sizeof(buffer), "%lldh%02lldm", whole / 3600, whole / 60 % 60);
  }
  return buffer;
}

std::string FormatTime(std::int64_t unix_ms) {
  const std::time_t seconds = unix_ms / 1000;
  std::tm parts = {};
  char buffer[64];
  if (gmtime_r(&seconds, &parts) == nullptr ||
      std::strftime(buffer, sizeof(buffer), "%Y-%m-%d %H:%M:%S UTC", &parts) == 0) {
    return "?";
  }
  return buffer;
}

}  // namespace pelab::render
