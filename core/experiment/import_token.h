// The name of a sweep in every database that it is imported into. Pure: thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "core/base/sha256.h"

namespace pelab::experiment {

// The name contains the hash of the submission's client token, but not the token, which is the
// submitter's secret. An imported sweep has such a name in place of a token, and keeps it.
inline std::string ImportToken(std::string_view client_token) {
  constexpr std::string_view kImported = "import-";
  if (client_token.starts_with(kImported)) return std::string(client_token);
  return std::string(kImported) + Sha256Hex(client_token);
}

}  // namespace pelab::experiment
