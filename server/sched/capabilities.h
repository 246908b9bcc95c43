// The abilities of a worker's trainer, read from the output of `pelab-trainer capabilities`. A
// value.
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
  int pack = 1;  // most jobs of one configuration that one trainer runs together
};

class Capabilities {
 public:
  // Parses {"pes": [{"name":…,"version":…}], "tasks": […], "analyses": […], …}. A missing list
  // restricts nothing, and neither does an empty text. INVALID_ARGUMENT if the text is not a JSON
  // object.
  static absl::StatusOr<Capabilities> Parse(const std::string& json);

  // Whether the worker fetches files that jobs need. False: it gets no job with an own encoding or
  // own data. True unless set.
  void set_fetches_files(bool fetches) { fetches_files_ = fetches; }

  // Empty if the slot can run a job with this requirement; otherwise the reason, in words.
  std::string WhyNot(const Slot& slot, const store::Requirement& requirement) const;

 private:
  using Versions = std::map<std::string, std::vector<int>>;
  std::optional<Versions> pes_;
  std::optional<Versions> tasks_;
  std::optional<Versions> analyses_;
  bool fetches_files_ = true;
};

}  // namespace pelab::sched
