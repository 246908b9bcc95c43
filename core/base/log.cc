#include "core/base/log.h"

#if FMT_VERSION < 100000
namespace fmt {
inline namespace v9 {
namespace detail {
template void vformat_to<char>(buffer<char>&, basic_string_view<char>,
                               basic_format_args<buffer_context<char>>, locale_ref);
}  // namespace detail
}  // namespace v9
}  // namespace fmt
#endif
