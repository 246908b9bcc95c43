// Text for terminals: what it may contain, how wide it is. Pure functions: thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pelab::render {

// Data as it may be shown: control characters, escape sequences, invisible direction marks and
// bytes that are not UTF-8 become \n, \t, \x1b, \u202e. With `keep_lines`, newlines and tabs stay.
std::string Escape(std::string_view text, bool keep_lines = false);

// Columns that UTF-8 text takes: 0 for combining marks, 2 for wide characters, else 1. SGR
// sequences take none.
int DisplayWidth(std::string_view text);

// At most `width` columns; what is cut off is marked by "…" in the last one.
std::string Truncate(std::string_view text, int width);

// In lines of at most `width` columns, with a newline between them: broken at spaces, and within a
// word only where it is longer than a line. Spaces at the end of a line are dropped.
std::string Wrap(std::string_view text, int width);

// Filled with spaces up to `width` columns.
std::string PadRight(std::string_view text, int width);
std::string PadLeft(std::string_view text, int width);

// "0.7012"; "-" for none.
std::string Fixed(std::optional<double> value, int decimals);
// "0.042", "3.1e-06".
std::string Probability(double p);
// The shortest digits that read back as the same double.
std::string Shortest(double value);
void AppendShortest(double value, std::string& out);
void AppendShortest(std::int64_t value, std::string& out);
// "1m20s", "3h05m", "45s", "0.8s".
std::string FormatSeconds(double seconds);
// Unix milliseconds as "2026-03-01 14:05:09 UTC".
std::string FormatTime(std::int64_t unix_ms);

}  // namespace pelab::render
