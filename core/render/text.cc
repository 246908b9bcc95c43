#include "core/render/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <ctime>

namespace pelab::render {
namespace {

struct CodePoint {
  char32_t value = 0;
  std::size_t bytes = 1;
  bool valid = false;
};

// Decodes strictly (RFC 3629): no overlong forms, no surrogates, nothing above U+10FFFF.
CodePoint Decode(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1, true};
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return {};
  char32_t value = lead & (0x7F >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    value = (value << 6) | (byte(i) & 0x3F);
  }
  const bool overlong = (length == 3 && value < 0x800) || (length == 4 && value < 0x10000);
  if (overlong || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) return {};
  return {value, length, true};
}

bool Between(char32_t c, char32_t first, char32_t last) { return c >= first && c <= last; }

bool IsUnsafe(char32_t c) {
  return c < 0x20 || Between(c, 0x7F, 0x9F) || Between(c, 0x200B, 0x200F) ||
         Between(c, 0x2028, 0x202E) || Between(c, 0x2060, 0x206F) || c == 0xFEFF;
}

int WidthOf(char32_t c) {
  if (Between(c, 0x300, 0x36F) || Between(c, 0x20D0, 0x20FF) || Between(c, 0xFE00, 0xFE0F))
    return 0;
  const bool wide =
      Between(c, 0x1100, 0x115F) || Between(c, 0x2E80, 0xA4CF) || Between(c, 0xAC00, 0xD7A3) ||
      Between(c, 0xF900, 0xFAFF) || Between(c, 0xFE30, 0xFE6F) || Between(c, 0xFF00, 0xFF60) ||
      Between(c, 0x1F300, 0x1F64F) || Between(c, 0x1F900, 0x1F9FF) || Between(c, 0x20000, 0x3FFFD);
  return wide ? 2 : 1;
}

// The length of an SGR sequence ("\x1b[1;32m") at the start of the text, otherwise 0.
std::size_t SgrLength(std::string_view text) {
  if (!text.starts_with("\x1b[")) return 0;
  const std::size_t end = text.find_first_not_of("0123456789;", 2);
  return end != std::string_view::npos && text[end] == 'm' ? end + 1 : 0;
}

std::string Escaped(char32_t c) {
  if (c == '\n') return "\\n";
  if (c == '\t') return "\\t";
  if (c == '\r') return "\\r";
  char buffer[16];
  std::snprintf(buffer, sizeof(buffer), c < 0x100 ? "\\x%02x" : "\\u%04x",
                static_cast<unsigned>(c));
  return buffer;
}

}  // namespace

std::string Escape(std::string_view text, bool keep_lines) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const CodePoint c = Decode(text);
    const bool kept_line = keep_lines && (c.value == '\n' || c.value == '\t');
    if (!c.valid) {
      out += Escaped(static_cast<unsigned char>(text.front()));
    } else if (IsUnsafe(c.value) && !kept_line) {
      out += Escaped(c.value);
    } else {
      out += text.substr(0, c.bytes);
    }
    text.remove_prefix(c.bytes);
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
    const CodePoint c = Decode(text);
    width += c.valid ? WidthOf(c.value) : 1;
    text.remove_prefix(c.bytes);
  }
  return width;
}

std::string Truncate(std::string_view text, int width) {
  if (DisplayWidth(text) <= width) return std::string(text);
  if (width <= 0) return "";
  std::string out;
  int used = 0;
  while (!text.empty()) {
    const CodePoint c = Decode(text);
    const int w = c.valid ? WidthOf(c.value) : 1;
    if (used + w > width - 1) break;
    used += w;
    out += text.substr(0, c.bytes);
    text.remove_prefix(c.bytes);
  }
  return out + "…";
}

namespace {

// The number of bytes of a word up to its best place for a break: after "_", "," or "/", or before
// "(".
std::size_t PartOf(std::string_view word) {
  for (std::size_t i = 1; i < word.size(); ++i) {
    const char before = word[i - 1];
    if (before == '_' || before == ',' || before == '/' || word[i] == '(') return i;
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
        const CodePoint c = Decode(part);
        const int columns = c.valid ? WidthOf(c.value) : 1;
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
