// Figures of one queue of pelab-scale, for metrics.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>

namespace pelab::metrics {

struct QueueFigures {
  std::string name;
  bool paused = false;
  // How many there are in each phase: waiting, starting, running, ending. nullopt: pelab-scale has
  // not reported lately, so nobody knows.
  std::optional<std::map<std::string, std::size_t>> allocations;
};

}  // namespace pelab::metrics
