// What a worker's trainer can run, from what `pelab-trainer capabilities` printed. A value.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/store/writes.h"

namespace pelab::sched {

struct Slot {
  int slot = 0;
  std::string device;
  std::string device_kind;  // cpu | gpu
  std::uint64_t memory_bytes = 0;
  int pack = 1;  // the most jobs of one configuration that its trainer takes at a time
};

class Capabilities {
 public:
  // {"pes": [{"name":…,"version":…}], "tasks": […], "analyses": […], …}; a list that is not there
  // restricts nothing.
  // INVALID_ARGUMENT where the text is not a JSON object.
  static absl::StatusOr<Capabilities> Parse(const std::string& json);

  // Empty where the slot can run it; else why not, in words.
  std::string WhyNot(const Slot& slot, const store::Requirement& requirement) const;

 private:
  using Versions = std::map<std::string, std::vector<int>>;
  std::optional<Versions> pes_;
  std::optional<Versions> tasks_;
  std::optional<Versions> analyses_;
};

}  // namespace pelab::sched
