// SHA-256 (FIPS 180-4), used for keys of jobs, names of artifacts and fingerprints of data sets.
// Hashes are always 64 lower-case hexadecimal digits.
//
// A program links one of two implementations. The services link pelab_sha256, which is OpenSSL's.
// The trainer links pelab_sha256_portable, which needs the standard library only: the trainer is
// built on GPU hosts that have no OpenSSL (docs/adr/0033).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace pelab {

// Computes a SHA-256 over bytes that arrive in pieces. Movable; one thread at a time.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void Update(std::string_view bytes);
  // Returns the hash of all bytes so far and resets the object.
  std::string FinishHex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string Sha256Hex(std::string_view bytes);

// Whether the text is a hash as these functions return it.
inline bool IsSha256(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == text.npos;
}

// The place of the file with this hash below a folder of files: "ab/abcd…". nullopt if the text is
// not a hash, because text from a database or a peer may be any path, such as "../../x".
inline std::optional<std::string> PlaceOfHash(std::string_view sha256) {
  if (!IsSha256(sha256)) return std::nullopt;
  return std::string(sha256.substr(0, 2)).append("/").append(sha256);
}

}  // namespace pelab
