// spdlog, for every file that logs. {fmt} before version 10 compiles all of its formatting anew in
// each of them, which takes a sixth of the time of such a file; it is compiled once here (log.cc).
#pragma once

#include <spdlog/spdlog.h>

#if FMT_VERSION < 100000
namespace fmt {
inline namespace v9 {
namespace detail {
extern template void vformat_to<char>(buffer<char>&, basic_string_view<char>,
                                      basic_format_args<buffer_context<char>>, locale_ref);
}  // namespace detail
}  // namespace v9
}  // namespace fmt
#endif
