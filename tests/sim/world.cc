#include "tests/sim/world.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace pelab::sim {

void World::At(absl::Duration when, std::function<void()> event) {
  // Rounded up, so that no event runs before its time.
  const auto rounded = absl::ToInt64Microseconds(absl::Ceil(when, absl::Microseconds(1)));
  const std::int64_t at = std::max(now_, rounded);
  events_.push_back({at, ++numbers_, std::move(event)});
  std::push_heap(events_.begin(), events_.end(), Later());
}

bool World::Step() {
  if (events_.empty()) return false;
  std::pop_heap(events_.begin(), events_.end(), Later());
  Event event = std::move(events_.back());
  events_.pop_back();
  now_ = event.when;
  event.run();
  return true;
}

void World::Violate(std::string what) {
  Note("VIOLATION: ", what);
  if (!violation_) violation_ = std::move(what);
}

void World::Print(const std::string& line) const {
  std::printf("%11.6f  %s\n", static_cast<double>(now_ - 1'000'000'000) / 1e6, line.c_str());
}

}  // namespace pelab::sim
