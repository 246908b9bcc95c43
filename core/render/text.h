// Text for terminals: escaping, display width and number formats. Pure functions: thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/utf8.h"

namespace pelab::render {

using pelab::Escape;

// How a text that is displayed as a whole may control what displays it.
enum class Markup {
  kPlain,    // lines and tabs
  kColored,  // also SGR sequences (colors)
  kCsv,      // lines that end in CRLF
  kJson,     // lines; other characters are escaped as JSON does it
};

// The last filter before a terminal: escapes whatever `markup` does not allow. Data is escaped by
// Escape before it becomes a part of a text; this catches what was forgotten.
std::string Displayable(std::string_view text, Markup markup);

// The number of terminal columns that UTF-8 text takes: 0 for combining marks, 2 for wide
// characters, otherwise 1. SGR sequences take none.
int DisplayWidth(std::string_view text);

// Shortens text to at most `width` columns; "…" in the last column marks a cut.
std::string Truncate(std::string_view text, int width);
// The same for labels, which may differ only at their ends: "…" follows the first two thirds of
// the columns, and the end of the text fills the last third.
std::string TruncateMiddle(std::string_view text, int width);

// Breaks text into lines of at most `width` columns with newlines between them. Breaks at spaces;
// breaks within a word only if the word is longer than a line. Drops spaces at the end of a line.
std::string Wrap(std::string_view text, int width);

// Pads with spaces up to `width` columns.
std::string PadRight(std::string_view text, int width);
std::string PadLeft(std::string_view text, int width);

// "0.7012"; "-" for nullopt.
std::string Fixed(std::optional<double> value, int decimals);
// "0.042", "3.1e-06".
std::string Probability(double p);
// The shortest digits that read back as the same double.
std::string Shortest(double value);
void AppendShortest(double value, std::string& out);
void AppendShortest(std::int64_t value, std::string& out);
// "1 job", "3 jobs".
std::string Counted(std::int64_t count, std::string_view what);
// "1m20s", "3h05m", "45s", "0.8s".
std::string FormatSeconds(double seconds);
// Unix milliseconds as "2026-03-01 14:05:09 UTC".
std::string FormatTime(std::int64_t unix_ms);

}  // namespace pelab::render
