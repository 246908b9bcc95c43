#include "core/catalog/heads.h"

#include <algorithm>
#include <iterator>

namespace pelab::catalog {
namespace {

constexpr std::string_view kToldApart[] = {"alibi", "partial_rope"};

}  // namespace

bool HeadsDiffer(std::string_view pe) {
  return std::find(std::begin(kToldApart), std::end(kToldApart), pe) != std::end(kToldApart);
}

}  // namespace pelab::catalog
