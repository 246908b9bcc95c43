// The principals that a coordinator knows, in memory, and how a call shows that it is one of them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/rpc/secrets.h"
#include "server/store/access_values.h"

namespace pelab::access {

// The principal that everybody is who has the token of --token-file.
inline constexpr char kShared[] = "shared";
// The principal of the coordinator's own pages, whose users --http-write admits.
inline constexpr char kPages[] = "pages";

// The proof of identity that a call carries.
struct Proof {
  std::optional<std::string> token;    // without "Bearer "; nullopt: it has none
  std::vector<std::string> cert_uris;  // of the certificate that TLS has verified

  bool operator==(const Proof&) const = default;
};

// Thread-safe.
class Principals {
 public:
  // `shared` may be null.
  Principals(const Clock& clock, std::shared_ptr<rpc::TokenFile> shared)
      : clock_(clock), shared_(std::move(shared)) {}

  // Replaces or adds one.
  void Set(const store::Principal& principal);

  // Whether calls need a principal: one is stored, or there is a token that everybody shares.
  bool on() const;
  bool has_shared() const { return shared_ != nullptr; }
  int size() const;
  std::vector<store::Principal> All() const;

  // The principal that the proof is of. UNAUTHENTICATED says what is wrong: nothing is shown, the
  // token or the certificate is nobody's, expired, or of a disabled principal.
  absl::StatusOr<store::Principal> Find(const Proof& proof) const;

 private:
  absl::StatusOr<store::Principal> FindByToken(const std::string& token) const;
  absl::Status MayCall(const store::Principal& principal) const;
  std::int64_t Now() const { return absl::ToUnixMillis(clock_.Wall()); }

  const Clock& clock_;
  const std::shared_ptr<rpc::TokenFile> shared_;
  mutable Mutex mutex_;
  std::map<std::string, store::Principal> by_name_ ABSL_GUARDED_BY(mutex_);
  // Names, by the hash of a token (also the one before) and by the URI of a certificate.
  std::map<std::string, std::string> by_token_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::string> by_uri_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pelab::access
