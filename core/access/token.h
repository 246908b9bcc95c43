// Tokens of principals. Thread-safe.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace pelab::access {

// "pelab_" and 64 hexadecimal digits of OpenSSL's random generator. The prefix lets scanners of
// repositories recognize a token that was committed by mistake.
std::string NewToken();

// The stored form of a token. A token is long and random, so one round of SHA-256 hides it.
std::string TokenHash(absl::string_view token);

}  // namespace pelab::access
