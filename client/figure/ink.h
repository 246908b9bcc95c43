// Text sizes (points) and colors of figures.
#pragma once

namespace pelab::client {

inline constexpr double kInk = 8;  // text size
inline constexpr double kMargin = 6;
inline constexpr char kText[] = "#1a2230";
inline constexpr char kMuted[] = "#56616f";

}  // namespace pelab::client
