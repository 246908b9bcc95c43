#include "server/recent_connections.h"

namespace pelab {

bool RecentConnections::Admit(const std::string& address, absl::Duration now) {
  Forget(now);
  const auto of_address = by_address_.find(address);
  const std::size_t open = of_address == by_address_.end() ? 0 : of_address->second;
  if (accepted_.size() >= limits_.in_all || open >= limits_.of_address) return false;
  accepted_.emplace_back(now, address);
  ++by_address_[address];
  return true;
}

void RecentConnections::Forget(absl::Duration now) {
  while (!accepted_.empty() && now - accepted_.front().first >= limits_.time) {
    const auto of_address = by_address_.find(accepted_.front().second);
    if (--of_address->second == 0) by_address_.erase(of_address);
    accepted_.pop_front();
  }
}

}  // namespace pelab
