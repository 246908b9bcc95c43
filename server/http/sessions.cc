#include "server/http/sessions.h"

#include <openssl/crypto.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "core/base/ids.h"

namespace pelab::http {
namespace {

constexpr absl::Duration kSayAgain = absl::Seconds(10);

}  // namespace

bool SameSecret(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

bool Sessions::IsToken(std::string_view given) {
  if (SameSecret(given, token_)) return true;
  const absl::Duration now = clock_.Monotonic();
  MutexLock lock(&mutex_);
  ++wrong_;
  if (said_ && now - *said_ < kSayAgain) return false;
  said_ = now;
  spdlog::warn("pages: {} wrong tokens so far", wrong_);
  return false;
}

Session Sessions::Open() {
  Session session{.id = RandomUuid() + RandomUuid(), .csrf = RandomUuid() + RandomUuid()};
  MutexLock lock(&mutex_);
  while (open_.size() >= kMostSessions) {
    open_.erase(std::min_element(open_.begin(), open_.end(), [](const auto& a, const auto& b) {
      return a.second.ends < b.second.ends;
    }));
  }
  open_[session.id] = {.csrf = session.csrf, .ends = clock_.Monotonic() + kSessionTime};
  return session;
}

std::optional<Session> Sessions::Find(std::string_view id) {
  MutexLock lock(&mutex_);
  const auto found = open_.find(id);
  if (found == open_.end()) return std::nullopt;
  if (found->second.ends <= clock_.Monotonic()) {
    open_.erase(found);
    return std::nullopt;
  }
  return Session{.id = found->first, .csrf = found->second.csrf};
}

void Sessions::Close(std::string_view id) {
  MutexLock lock(&mutex_);
  if (const auto found = open_.find(id); found != open_.end()) open_.erase(found);
}

}  // namespace pelab::http
