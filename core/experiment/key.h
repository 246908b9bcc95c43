// The identity of a job. A pure function: thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "core/base/sha256.h"

namespace pelab::experiment {

// The key of the job with this canonical JSON (canonical_json.h): its SHA-256 in lower-case
// hexadecimal.
inline std::string KeyOf(std::string_view canonical_json) { return Sha256Hex(canonical_json); }

}  // namespace pelab::experiment
