#include "core/event/enums.h"

#include "absl/strings/ascii.h"

namespace pelab::event {

std::string NameOf(v1::Drain::Mode drain) {
  return drain == v1::Drain::RESUME ? "" : absl::AsciiStrToLower(v1::Drain::Mode_Name(drain));
}

std::optional<v1::Drain::Mode> ParseDrain(std::string_view name) {
  for (int i = 0; i < v1::Drain::Mode_descriptor()->value_count(); ++i) {
    const auto drain =
        static_cast<v1::Drain::Mode>(v1::Drain::Mode_descriptor()->value(i)->number());
    if (NameOf(drain) == name) return drain;
  }
  return std::nullopt;
}

}  // namespace pelab::event
