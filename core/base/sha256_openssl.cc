#include <openssl/evp.h>

#include <array>
#include <stdexcept>

#include "absl/strings/escaping.h"
#include "core/base/sha256.h"

namespace pelab {
namespace {

// OpenSSL fails only without memory or with a broken installation.
void Check(bool ok) {
  if (!ok) throw std::runtime_error("OpenSSL cannot compute SHA-256");
}

// Looking the algorithm up takes longer than hashing a short text, so it is done once.
const EVP_MD* Algorithm() {
  static const EVP_MD* const algorithm = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  return algorithm;
}

}  // namespace

struct Sha256::State {
  State() { Check(context != nullptr && EVP_DigestInit_ex2(context, Algorithm(), nullptr) == 1); }
  ~State() { EVP_MD_CTX_free(context); }
  State(const State&) = delete;

  EVP_MD_CTX* const context = EVP_MD_CTX_new();
};

Sha256::Sha256() : state_(std::make_unique<State>()) {}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::Update(std::string_view bytes) {
  Check(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) == 1);
}

std::string Sha256::FinishHex() {
  std::array<char, 32> hash;
  Check(EVP_DigestFinal_ex(state_->context, reinterpret_cast<unsigned char*>(hash.data()),
                           nullptr) == 1 &&
        EVP_DigestInit_ex2(state_->context, Algorithm(), nullptr) == 1);
  return absl::BytesToHexString(absl::string_view(hash.data(), hash.size()));
}

std::string Sha256Hex(std::string_view bytes) {
  Sha256 hash;
  hash.Update(bytes);
  return hash.FinishHex();
}

}  // namespace pelab
