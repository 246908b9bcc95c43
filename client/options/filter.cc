#include "client/options/filter.h"

#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "core/base/strings.h"

namespace pelab::client {
namespace {

std::string Trim(std::string_view text) {
  while (!text.empty() && absl::ascii_isspace(static_cast<unsigned char>(text.front())))
    text.remove_prefix(1);
  while (!text.empty() && absl::ascii_isspace(static_cast<unsigned char>(text.back())))
    text.remove_suffix(1);
  return std::string(text);
}

}  // namespace

absl::StatusOr<std::vector<v1::JobState>> ParseStates(const std::string& text) {
  std::vector<v1::JobState> states;
  for (const std::string& part : std::vector<std::string>(absl::StrSplit(text, ','))) {
    const std::string name = Trim(part);
    v1::JobState state = v1::JOB_STATE_UNSPECIFIED;
    if (name == "open") {
      states.insert(states.end(),
                    {v1::JOB_STATE_QUEUED, v1::JOB_STATE_ASSIGNED, v1::JOB_STATE_RUNNING});
    } else if (v1::JobState_Parse("JOB_STATE_" + absl::AsciiStrToUpper(name), &state) &&
               state != v1::JOB_STATE_UNSPECIFIED) {
      states.push_back(state);
    } else {
      return absl::InvalidArgumentError(
          Concat("--state: unknown state \"", name,
                 "\"; known: queued, assigned, running, succeeded, failed, cancelled, open"));
    }
  }
  return states;
}

absl::StatusOr<v1::Override> ParseOverride(const std::string& text) {
  const std::size_t at = text.find('=');
  v1::Override result;
  if (at != std::string::npos) {
    result.set_field(Trim(std::string_view(text).substr(0, at)));
    result.set_value(Trim(std::string_view(text).substr(at + 1)));
  }
  if (result.field().empty()) {
    return absl::InvalidArgumentError(
        Concat("--set: \"", text, "\" is not FIELD=VALUE, as in model.layers=4"));
  }
  return result;
}

absl::StatusOr<std::vector<std::string>> ParseNames(const std::string& text,
                                                    const std::string& flag) {
  std::vector<std::string> names;
  for (const std::string& part : std::vector<std::string>(absl::StrSplit(text, ','))) {
    names.push_back(Trim(part));
    if (names.back().empty()) {
      return absl::InvalidArgumentError(
          Concat(flag, ": \"", text, "\" has an empty name; write NAME,NAME"));
    }
  }
  return names;
}

}  // namespace pelab::client
