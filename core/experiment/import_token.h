// The name of a sweep in every database that it is imported into. Pure: thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "core/base/sha256.h"

namespace pelab::experiment {

// Of the client token of its submission, which is a secret of the submitter, the name has the hash
// alone. A sweep that was imported has such a name in place of the token, and keeps it.
inline std::string ImportToken(std::string_view client_token) {
  constexpr std::string_view kImported = "import-";
  if (client_token.starts_with(kImported)) return std::string(client_token);
  return std::string(kImported) + Sha256Hex(client_token);
}

}  // namespace pelab::experiment
