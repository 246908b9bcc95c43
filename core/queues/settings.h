// The settings of a queue by their keys: which values are allowed, and their form as JSON. A file
// (queues_file.h) and the coordinator accept the same. Pure functions: thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/queues/queue.h"

namespace pelab::queues {

// The largest settings as JSON.
inline constexpr std::size_t kMostSettingsBytes = 64 << 10;

// A value as TOML or JSON has it; monostate: of another type.
using Value = std::variant<std::monostate, std::int64_t, std::string, std::vector<std::string>>;

// INVALID_ARGUMENT unless a queue may have this name.
absl::Status CheckQueueName(std::string_view name);

// Sets the value of one key. INVALID_ARGUMENT says which values are allowed: "max_waiting must be
// an integer from 1 to 100, not 0"; or that there is no such key, and which one was meant.
absl::Status SetSetting(std::string_view key, const Value& value, Queue& queue);

// The text of `value`: the whole value of the key, or one word of its list. INVALID_ARGUMENT, which
// names the key, unless it is a text on one line that is not empty.
absl::StatusOr<std::string> WordOf(std::string_view key, const Value& value);

bool IsSetting(std::string_view key);
// The keys that every queue must have.
const std::vector<std::string>& NeededKeys();

// A compact object with sorted keys, without those at their defaults: {"max_allocations":8,…}.
std::string SettingsJson(const Queue& queue);
// The queue of such an object. INVALID_ARGUMENT names everything that is wrong with it.
absl::StatusOr<Queue> ParseSettings(const std::string& name, const std::string& json);

// The first bytes of a text, escaped, for messages.
std::string ShownValue(std::string_view text);

}  // namespace pelab::queues
