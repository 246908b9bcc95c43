// Bounds on texts that clients, workers and imports send and that are stored as they are. Pure
// functions: thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace pelab::service {

// INVALID_ARGUMENT if the text has more than `most` bytes, or a character that a terminal would not
// print (Escape of core/base/utf8.h). `what` begins the sentence:
//   host of worker w1 has the character \n, which is not printable
absl::Status CheckText(absl::string_view what, std::string_view text, std::size_t most);

// INVALID_ARGUMENT if no worker can have this id. `what` begins the sentence, as above.
absl::Status CheckWorkerId(absl::string_view what, std::string_view id);

// INVALID_ARGUMENT if new sweeps may not have this name.
absl::Status CheckSweepName(const std::string& name);

// At most `most` bytes of the text, then made printable. For texts that a machine made: they are no
// reason to refuse what they belong to.
std::string Printable(std::string_view text, std::size_t most);

}  // namespace pelab::service
