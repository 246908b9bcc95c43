// SHA-256 (FIPS 180-4), used for keys of jobs, names of artifacts and fingerprints of data sets.
// Hashes are always 64 lower-case hexadecimal digits. Standard library only, so that the trainer
// builds on a GPU host that has no OpenSSL.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace pelab {

// Computes a SHA-256 over bytes that arrive in pieces. Copyable; one thread at a time.
class Sha256 {
 public:
  void Update(std::string_view bytes);
  // Returns the hash of all bytes so far and resets the object.
  std::string FinishHex();

 private:
  void Compress(const unsigned char* block);

  std::array<std::uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<unsigned char, 64> block_ = {};
  std::size_t filled_ = 0;
  std::uint64_t bytes_ = 0;
};

std::string Sha256Hex(std::string_view bytes);

}  // namespace pelab
