#include "core/base/utf8.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace pelab {
namespace {

bool Between(char32_t c, char32_t first, char32_t last) { return c >= first && c <= last; }

// The number of bytes at the start that are ASCII: most texts are ASCII from end to end.
std::size_t AsciiBytes(std::string_view text) {
  const auto* end = std::find_if(text.data(), text.data() + text.size(),
                                 [](char c) { return static_cast<unsigned char>(c) >= 0x80; });
  return static_cast<std::size_t>(end - text.data());
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

Utf8Character FirstCharacter(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  if (first < 0x80) return {.value = first, .bytes = 1, .valid = true};
  utf8proc_int32_t value = 0;
  const auto bytes = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                      static_cast<utf8proc_ssize_t>(text.size()), &value);
  if (bytes <= 0) return {};
  return {static_cast<char32_t>(value), static_cast<std::size_t>(bytes), true};
}

bool IsUtf8(std::string_view text) {
  text.remove_prefix(AsciiBytes(text));
  while (!text.empty()) {
    const Utf8Character c = FirstCharacter(text);
    if (!c.valid) return false;
    text.remove_prefix(c.bytes);
  }
  return true;
}

std::string Shorten(std::string_view text, std::size_t bytes) {
  std::string shown;
  while (!text.empty()) {
    const Utf8Character c = FirstCharacter(text);
    if (shown.size() + c.bytes > bytes) return shown + "…";
    shown += c.valid && c.value != 0 ? text.substr(0, c.bytes) : "?";
    text.remove_prefix(c.bytes);
  }
  return shown;
}

std::string ValidUtf8(std::string text) {
  return IsUtf8(text) ? std::move(text) : Shorten(text, text.size());
}

bool IsUnsafeToShow(char32_t c) {
  return c < 0x20 || Between(c, 0x7F, 0x9F) || c == 0x61C || Between(c, 0x200B, 0x200F) ||
         Between(c, 0x2028, 0x202E) || Between(c, 0x2060, 0x206F) || c == 0xFEFF;
}

std::string Escape(std::string_view text, bool keep_lines) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Utf8Character c = FirstCharacter(text);
    const bool kept_line = keep_lines && (c.value == '\n' || c.value == '\t');
    if (!c.valid) {
      out += Escaped(static_cast<unsigned char>(text.front()));
    } else if (IsUnsafeToShow(c.value) && !kept_line) {
      out += Escaped(c.value);
    } else {
      out += text.substr(0, c.bytes);
    }
    text.remove_prefix(c.bytes);
  }
  return out;
}

std::string EscapeJson(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  while (!json.empty()) {
    const Utf8Character c = FirstCharacter(json);
    const bool blank = c.value == '\n' || c.value == '\t';
    if (c.valid && (blank || !IsUnsafeToShow(c.value))) {
      out += json.substr(0, c.bytes);
    } else {
      char buffer[16];
      std::snprintf(buffer, sizeof(buffer), "\\u%04x",
                    c.valid ? static_cast<unsigned>(c.value) : 0xFFFDU);
      out += buffer;
    }
    json.remove_prefix(c.bytes);
  }
  return out;
}

}  // namespace pelab
