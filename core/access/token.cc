#include "core/access/token.h"

#include <openssl/rand.h>

#include <array>
#include <cstdlib>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/base/sha256.h"

namespace pelab::access {

std::string NewToken() {
  std::array<unsigned char, 32> bytes{};
  // Without random numbers no secret can be made; OpenSSL fails here only if the kernel has none.
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1) std::abort();
  return absl::StrCat("pelab_", absl::BytesToHexString(
                                    {reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
}

std::string TokenHash(absl::string_view token) { return Sha256Hex({token.data(), token.size()}); }

}  // namespace pelab::access
