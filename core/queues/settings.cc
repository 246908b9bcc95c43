#include "core/queues/settings.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/duration.h"
#include "core/base/json_text.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/base/utf8.h"
#include "core/catalog/catalog.h"
#include "core/catalog/own.h"

namespace pelab::queues {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kShown = 100;  // bytes of a value in a message
constexpr int kMostAllocations = 10'000;
constexpr std::string_view kBreaks{"\n\r\0", 3};

// One key: how its value is read into a queue, and how it is written.
struct Key {
  std::string name;
  std::function<absl::Status(std::string_view key, const Value&, Queue&)> read;
  std::function<Json(const Queue&)> write;
};

// ", not 5"; empty for what cannot be shown in a few words.
std::string NotThis(const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) {
    return Concat(", not \"", ShownValue(*text), "\"");
  }
  if (const auto* number = std::get_if<std::int64_t>(&value)) return Concat(", not ", *number);
  return "";
}

absl::Status MustBe(std::string_view key, std::string_view what, const Value& value) {
  return absl::InvalidArgumentError(Concat(key, " must be ", what, NotThis(value)));
}

std::string TextOrNone(const Value& value) {
  const auto* text = std::get_if<std::string>(&value);
  return text == nullptr ? "" : *text;
}

Key IntKey(const char* name, int Queue::*member, int most) {
  return {name,
          [member, most](std::string_view key, const Value& value, Queue& queue) {
            const auto* number = std::get_if<std::int64_t>(&value);
            if (number == nullptr || *number < 1 || *number > most) {
              return MustBe(key, Concat("an integer from 1 to ", most), value);
            }
            queue.*member = static_cast<int>(*number);
            return absl::OkStatus();
          },
          [member](const Queue& queue) { return Json(queue.*member); }};
}

Key TimeKey(const char* name, absl::Duration Queue::*member) {
  return {name,
          [member](std::string_view key, const Value& value, Queue& queue) {
            const auto time = ParseDuration(TextOrNone(value), "");
            if (!time.ok()) {
              return MustBe(key, "a time such as \"4h\", \"90m\" or \"30s\"", value);
            }
            queue.*member = *time;
            return absl::OkStatus();
          },
          [member](const Queue& queue) { return Json(absl::FormatDuration(queue.*member)); }};
}

Key TextKey(const char* name, std::string Queue::*member) {
  return {name,
          [member](std::string_view key, const Value& value, Queue& queue) {
            PELAB_ASSIGN_OR_RETURN(queue.*member, WordOf(key, value));
            return absl::OkStatus();
          },
          [member](const Queue& queue) { return Json(queue.*member); }};
}

Key WordsKey(const char* name, std::vector<std::string> Queue::*member) {
  return {name,
          [member](std::string_view key, const Value& value, Queue& queue) {
            const auto* words = std::get_if<std::vector<std::string>>(&value);
            if (words == nullptr) return MustBe(key, "a list of texts, one a word", value);
            for (const std::string& word : *words) {
              PELAB_RETURN_IF_ERROR(WordOf(key, word).status());
            }
            queue.*member = *words;
            return absl::OkStatus();
          },
          [member](const Queue& queue) { return Json(queue.*member); }};
}

absl::Status ReadDevice(std::string_view key, const Value& value, Queue& queue) {
  const std::string text = TextOrNone(value);
  if (text != "gpu" && text != "cpu") return MustBe(key, "\"gpu\" or \"cpu\"", value);
  queue.device = text;
  return absl::OkStatus();
}

absl::Status ReadMemory(std::string_view key, const Value& value, Queue& queue) {
  const auto size = ParseByteSize(TextOrNone(value), "");
  if (!size.ok()) return MustBe(key, "a size such as \"40GiB\"", value);
  queue.memory_bytes = *size;
  return absl::OkStatus();
}

// Sorted by name.
const std::vector<Key>& Keys() {
  static const auto& keys = *new std::vector<Key>{
      {"device", ReadDevice, [](const Queue& queue) { return Json(queue.device); }},
      TimeKey("idle_exit", &Queue::idle_exit),
      IntKey("max_allocations", &Queue::max_allocations, kMostAllocations),
      IntKey("max_waiting", &Queue::max_waiting, 100),
      {"memory", ReadMemory, [](const Queue& queue) { return Json(Concat(queue.memory_bytes)); }},
      IntKey("pack", &Queue::pack, 64),
      TextKey("program", &Queue::program),
      WordsKey("sbatch", &Queue::sbatch),
      IntKey("slots", &Queue::slots, 1024),
      TimeKey("start_timeout", &Queue::start_timeout),
      TimeKey("time_limit", &Queue::time_limit),
      TextKey("workdir", &Queue::workdir),
      WordsKey("worker", &Queue::worker)};
  return keys;
}

const Key* FindKey(std::string_view name) {
  const auto found = std::find_if(Keys().begin(), Keys().end(),
                                  [name](const Key& one) { return one.name == name; });
  return found == Keys().end() ? nullptr : &*found;
}

absl::Status UnknownKey(std::string_view key) {
  std::vector<std::string_view> known;
  known.reserve(Keys().size());
  for (const Key& one : Keys()) known.push_back(one.name);
  const std::string near(catalog::DidYouMean(key, known));
  return absl::InvalidArgumentError(Concat("unknown key \"", ShownValue(key), "\"; ",
                                           near.empty() ? "" : Concat("did you mean ", near, "? "),
                                           "known: ", Join(known, ", ")));
}

Value ValueOf(const Json& json) {
  if (json.is_string()) return json.get<std::string>();
  if (const auto number = IntegerOf<std::int64_t>(json)) return *number;
  if (!json.is_array()) return {};
  std::vector<std::string> words;
  for (const Json& word : json) {
    if (!word.is_string()) return {};
    words.push_back(word.get<std::string>());
  }
  return words;
}

}  // namespace

std::string ShownValue(std::string_view text) { return Escape(Shorten(text, kShown)); }

absl::Status CheckQueueName(std::string_view name) {
  if (catalog::IsOwnName(name)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      Concat("a queue is named \"", ShownValue(name), "\"; allowed: ", catalog::kOwnNameRule));
}

absl::StatusOr<std::string> WordOf(std::string_view key, const Value& value) {
  const std::string text = TextOrNone(value);
  if (!text.empty() && text.find_first_of(kBreaks) == std::string::npos) return text;
  return MustBe(key, "a text on one line", value);
}

absl::Status SetSetting(std::string_view key, const Value& value, Queue& queue) {
  const Key* found = FindKey(key);
  return found == nullptr ? UnknownKey(key) : found->read(key, value, queue);
}

bool IsSetting(std::string_view key) { return FindKey(key) != nullptr; }

const std::vector<std::string>& NeededKeys() {
  static const auto& needed = *new std::vector<std::string>{"time_limit", "workdir", "worker"};
  return needed;
}

std::string SettingsJson(const Queue& queue) {
  Json settings = Json::object();
  for (const Key& key : Keys()) {
    const bool needed = std::count(NeededKeys().begin(), NeededKeys().end(), key.name) != 0;
    Json value = key.write(queue);
    if (needed || value != key.write(Queue())) settings[key.name] = std::move(value);
  }
  return settings.dump();
}

absl::StatusOr<Queue> ParseSettings(const std::string& name, const std::string& json) {
  PELAB_RETURN_IF_ERROR(CheckQueueName(name));
  if (json.size() > kMostSettingsBytes) {
    return absl::InvalidArgumentError(Concat("the settings of queue ", name, " have ", json.size(),
                                             " bytes; allowed: ", kMostSettingsBytes));
  }
  const Json settings = ParseJson(json);
  if (!settings.is_object()) {
    return absl::InvalidArgumentError(
        Concat("the settings of queue ", name, " are no JSON object"));
  }
  Queue queue{.name = name};
  std::vector<std::string> mistakes;
  for (const auto& [key, value] : settings.items()) {
    const absl::Status status = SetSetting(key, ValueOf(value), queue);
    if (!status.ok()) mistakes.emplace_back(status.message());
  }
  for (const std::string& key : NeededKeys()) {
    if (!settings.contains(key)) mistakes.push_back(Concat("it lacks ", key));
  }
  if (mistakes.empty()) return queue;
  return absl::InvalidArgumentError(Concat("queue ", name, ": ", Join(mistakes, "; ")));
}

}  // namespace pelab::queues
