// The text size and the margin, both in points, and the text colors of figures.
#pragma once

namespace pelab::client {

inline constexpr double kInk = 8;     // text size
inline constexpr double kMargin = 6;  // around and between the parts of a figure
inline constexpr char kText[] = "#1a2230";
inline constexpr char kMuted[] = "#56616f";

}  // namespace pelab::client
