#include "core/base/ids.h"

#include <sys/random.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace pelab {
namespace {

// getrandom fails only on a kernel that lacks it. The program then aborts, because a predictable
// identifier would be worse.
void FillRandom(void* data, std::size_t bytes) {
  auto* at = static_cast<unsigned char*>(data);
  while (bytes > 0) {
    const ssize_t got = getrandom(at, bytes, 0);
    if (got < 0) {
      if (errno == EINTR) continue;
      std::perror("getrandom");
      std::abort();
    }
    at += got;
    bytes -= static_cast<std::size_t>(got);
  }
}

// Asks the kernel for a whole block at a time: a coordinator draws tens of thousands of numbers per
// second.
void TakeRandom(void* data, std::size_t bytes) {
  struct Block {
    std::array<unsigned char, 512> bytes;
    std::size_t used = sizeof(bytes);
  };
  thread_local Block block;
  if (block.used + bytes > block.bytes.size()) {
    FillRandom(block.bytes.data(), block.bytes.size());
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
  constexpr absl::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
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
