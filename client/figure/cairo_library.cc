#include "client/figure/cairo_library.h"

#include <dlfcn.h>

#include <string>
#include <type_traits>

#include "core/base/strings.h"

namespace pelab::client {
namespace {

constexpr char kFile[] = "libcairo.so.2";

absl::StatusOr<CairoLibrary> Load() {
  void* const file = dlopen(kFile, RTLD_NOW | RTLD_LOCAL);
  std::string missing = file == nullptr ? dlerror() : "";
  CairoLibrary cairo;
  const auto find = [&](const char* name, auto& function) {
    if (file == nullptr) return;
    function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(file, name));
    if (function == nullptr) missing = Concat(kFile, " has no ", name);
  };
#define PELAB_FIND(name) find("cairo_" #name, cairo.name);
  PELAB_CAIRO_FUNCTIONS(PELAB_FIND)
#undef PELAB_FIND
  if (missing.empty()) return cairo;
  return absl::FailedPreconditionError(
      Concat("figures are drawn by cairo, which this host lacks (", missing,
             "); Debian's package is libcairo2. --output latex needs no cairo"));
}

}  // namespace

absl::StatusOr<const CairoLibrary*> LoadCairo() {
  static const auto& cairo = *new absl::StatusOr<CairoLibrary>(Load());
  if (!cairo.ok()) return cairo.status();
  return &*cairo;
}

}  // namespace pelab::client
