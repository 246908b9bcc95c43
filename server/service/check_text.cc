#include "server/service/check_text.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/utf8.h"
#include "core/experiment/sweep_name.h"
#include "server/limits.h"

namespace pelab::service {
namespace {

// The first character that Escape replaces, as Escape writes it.
std::string FirstEscaped(std::string_view text, std::string_view escaped) {
  const auto differ = std::mismatch(text.begin(), text.end(), escaped.begin(), escaped.end());
  const auto at = static_cast<std::size_t>(differ.first - text.begin());
  std::size_t bytes = 1;
  while (at + bytes < text.size() && (static_cast<unsigned char>(text[at + bytes]) & 0xC0) == 0x80)
    ++bytes;
  return Escape(text.substr(at, bytes));
}

}  // namespace

absl::Status CheckText(absl::string_view what, std::string_view text, std::size_t most) {
  if (text.size() > most) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " has ", text.size(), " bytes; at most ", most, " are allowed"));
  }
  const std::string escaped = Escape(text);
  if (escaped == text) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      what, " has the character ", FirstEscaped(text, escaped), ", which is not printable"));
}

absl::Status CheckWorkerId(absl::string_view what, std::string_view id) {
  const bool printable =
      std::all_of(id.begin(), id.end(), [](unsigned char c) { return c > 0x20 && c < 0x7f; });
  if (!id.empty() && id.size() <= limits::kWorkerIdBytes && printable) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(what, " must be 1 to ", limits::kWorkerIdBytes,
                                                 " printable characters of ASCII without spaces"));
}

absl::Status CheckSweepName(const std::string& name) {
  if (!experiment::IsSweepName(name)) {
    return absl::InvalidArgumentError(absl::StrCat("name \"", Printable(name, 100), "\" must be ",
                                                   std::string(experiment::kSweepNameRule)));
  }
  if (experiment::IsNumberName(name)) {
    return absl::InvalidArgumentError(
        absl::StrCat("name \"", name, "\" must not be a number: sweeps have numbers, too, and ",
                     "`pelab cancel ", name, "` would mean another one"));
  }
  return absl::OkStatus();
}

std::string Printable(std::string_view text, std::size_t most) {
  return Escape(Shorten(text, most));
}

}  // namespace pelab::service
