// Unpredictable, practically unique identifiers from the kernel's random source. Thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace pelab {

// 64 random bits, never 0 (0 stands for "none"). Used as fencing tokens.
std::uint64_t RandomToken();

// A version 4 UUID (RFC 9562, section 5.4) in lower case: "f81d4fae-7dec-4d0a-a765-00a0c91e6bf6".
std::string RandomUuid();

// Whether `text` is a lower-case UUID of any version.
bool IsUuid(absl::string_view text);

// A uniform double in [0, 1), used for jitter.
double RandomUnit();

}  // namespace pelab
