#include "server/http/sessions.h"

#include <algorithm>
#include <utility>

#include "core/base/ids.h"

namespace pelab::http {

bool Sessions::IsToken(std::string_view given) {
  if (token_->Is(given)) return true;
  wrong_.Add();
  return false;
}

Session Sessions::Open() {
  Session session{.id = RandomUuid() + RandomUuid(), .csrf = RandomUuid() + RandomUuid()};
  const std::uint64_t version = token_->Version();
  MutexLock lock(&mutex_);
  while (open_.size() >= kMostSessions) {
    open_.erase(std::min_element(open_.begin(), open_.end(), [](const auto& a, const auto& b) {
      return a.second.ends < b.second.ends;
    }));
  }
  open_[session.id] = {
      .csrf = session.csrf, .ends = clock_.Monotonic() + kSessionTime, .version = version};
  return session;
}

std::optional<Session> Sessions::Find(std::string_view id) {
  const std::uint64_t version = token_->Version();
  MutexLock lock(&mutex_);
  const auto found = open_.find(id);
  if (found == open_.end()) return std::nullopt;
  if (found->second.ends <= clock_.Monotonic() || found->second.version != version) {
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
