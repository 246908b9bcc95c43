#include "core/base/ids.h"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "absl/strings/escaping.h"

namespace pelab {
namespace {

// Asks the kernel for a whole block at a time: a coordinator draws tens of thousands of numbers per
// second.
void TakeRandom(void* data, std::size_t bytes) {
  struct Block {
    std::array<unsigned char, 256> bytes;  // the most that getentropy gives
    std::size_t used = sizeof(bytes);
  };
  thread_local Block block;
  if (block.used + bytes > block.bytes.size()) {
    // Fails only on a kernel without getentropy. A predictable identifier would be worse than none.
    if (getentropy(block.bytes.data(), block.bytes.size()) != 0) {
      std::perror("getentropy");
      std::abort();
    }
    block.used = 0;
  }
  std::memcpy(data, block.bytes.data() + block.used, bytes);
  block.used += bytes;
}

}  // namespace

std::uint64_t RandomToken() {
  std::uint64_t token = 0;
  while (token == 0) TakeRandom(&token, sizeof token);
  return token;
}

std::string RandomUuid() {
  std::array<unsigned char, 16> bytes;
  TakeRandom(bytes.data(), bytes.size());
  bytes[6] = (bytes[6] & 0x0F) | 0x40;  // version 4
  bytes[8] = (bytes[8] & 0x3F) | 0x80;  // variant 10
  std::string text = absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  for (const std::size_t dash : {8, 13, 18, 23}) text.insert(dash, 1, '-');
  return text;
}

bool IsUuid(absl::string_view text) {
  if (text.size() != 36) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    const char c = text[i];
    const bool digit = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
    if (dash ? c != '-' : !digit) return false;
  }
  return true;
}

double RandomUnit() { return static_cast<double>(RandomToken() >> 11) * 0x1.0p-53; }

}  // namespace pelab
