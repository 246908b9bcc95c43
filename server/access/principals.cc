#include "server/access/principals.h"

#include "absl/strings/str_cat.h"
#include "core/base/sha256.h"
#include "core/base/status.h"

namespace pelab::access {

void Principals::Set(const store::Principal& principal) {
  MutexLock lock(&mutex_);
  const auto before = by_name_.find(principal.name);
  if (before != by_name_.end()) {
    by_token_.erase(before->second.token_sha256);
    by_token_.erase(before->second.previous_token_sha256);
    by_uri_.erase(before->second.certificate_uri);
  }
  by_name_[principal.name] = principal;
  for (const std::string& hash : {principal.token_sha256, principal.previous_token_sha256}) {
    if (!hash.empty()) by_token_[hash] = principal.name;
  }
  if (!principal.certificate_uri.empty()) by_uri_[principal.certificate_uri] = principal.name;
}

bool Principals::on() const {
  if (shared_) return true;
  MutexLock lock(&mutex_);
  return !by_name_.empty();
}

int Principals::size() const {
  MutexLock lock(&mutex_);
  return static_cast<int>(by_name_.size());
}

std::vector<store::Principal> Principals::All() const {
  MutexLock lock(&mutex_);
  std::vector<store::Principal> all;
  for (const auto& [name, principal] : by_name_) all.push_back(principal);
  return all;
}

absl::Status Principals::MayCall(const store::Principal& principal) const {
  if (principal.disabled) {
    return absl::UnauthenticatedError(
        absl::StrCat("principal ", principal.name, " is disabled; an operator can enable it"));
  }
  if (principal.expires_at != 0 && principal.expires_at <= Now()) {
    return absl::UnauthenticatedError(absl::StrCat(
        "principal ", principal.name, " has expired; an operator can renew it: pelab admin token ",
        "rotate ", principal.name));
  }
  return absl::OkStatus();
}

absl::StatusOr<store::Principal> Principals::FindByToken(const std::string& token) const {
  const std::string hash = Sha256Hex(token);
  MutexLock lock(&mutex_);
  const auto found = by_token_.find(hash);
  if (found == by_token_.end()) {
    return absl::UnauthenticatedError("the token is not one of this coordinator's");
  }
  const store::Principal& principal = by_name_.at(found->second);
  if (hash != principal.token_sha256 && principal.previous_until <= Now()) {
    return absl::UnauthenticatedError(
        absl::StrCat("the token of principal ", principal.name, " was replaced; use the new one"));
  }
  return principal;
}

absl::StatusOr<store::Principal> Principals::Find(const Proof& proof) const {
  if (proof.token) {
    if (shared_ && shared_->Is(*proof.token)) {
      return store::Principal{.name = kShared, .role = v1::ROLE_OPERATOR};
    }
    PELAB_ASSIGN_OR_RETURN(store::Principal principal, FindByToken(*proof.token));
    PELAB_RETURN_IF_ERROR(MayCall(principal));
    return principal;
  }
  for (const std::string& uri : proof.cert_uris) {
    MutexLock lock(&mutex_);
    const auto found = by_uri_.find(uri);
    if (found == by_uri_.end()) continue;
    const store::Principal& principal = by_name_.at(found->second);
    PELAB_RETURN_IF_ERROR(MayCall(principal));
    return principal;
  }
  if (!proof.cert_uris.empty()) {
    return absl::UnauthenticatedError(absl::StrCat("the certificate of ", proof.cert_uris.front(),
                                                   " is not one of this coordinator's principals"));
  }
  return absl::UnauthenticatedError(
      "this coordinator needs a token; give --token-file or PELAB_TOKEN");
}

}  // namespace pelab::access
