// Sizes and colours of what is written on figures, in points.
#pragma once

namespace pelab::client {

inline constexpr double kInk = 8;  // size of text
inline constexpr double kMargin = 6;
inline constexpr char kText[] = "#1a2230";
inline constexpr char kMuted[] = "#56616f";

}  // namespace pelab::client
