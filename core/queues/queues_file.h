// Reads queues from a TOML file.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/queues/queue.h"

namespace pelab::queues {

// The largest file.
inline constexpr std::size_t kMostFileBytes = 1 << 20;

// The tables [queue.NAME] of the text, in the order of their names. INVALID_ARGUMENT with a line
// for each mistake: "queues.toml:7:16: max_waiting must be …". Pure.
absl::StatusOr<std::vector<Queue>> ParseQueues(const std::string& text, const std::string& file);

// The queues of the file at `path`. Also the errors of ReadFile.
absl::StatusOr<std::vector<Queue>> ReadQueues(const std::string& path);

}  // namespace pelab::queues
