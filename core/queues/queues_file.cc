#include "core/queues/queues_file.h"

#include <toml++/toml.h>

#include "core/base/file.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/queues/settings.h"

namespace pelab::queues {
namespace {

// A value; texts of a list that are not one are left to the caller.
Value ValueOf(const toml::node& node) {
  if (const auto text = node.value_exact<std::string>()) return *text;
  if (const auto number = node.value_exact<std::int64_t>()) return *number;
  return {};
}

// Reads one file. Every mistake is noted with its place.
class Reader {
 public:
  explicit Reader(const std::string& file) : file_(file) {}

  absl::StatusOr<std::vector<Queue>> Read(const std::string& text) {
    try {
      ReadTop(toml::parse(text, file_));
    } catch (const toml::parse_error& error) {
      Say(error.source(), error.description());
    }
    if (!mistakes_.empty()) return absl::InvalidArgumentError(Join(mistakes_, "\n"));
    if (queues_.empty()) {
      return absl::InvalidArgumentError(
          Concat(file_, ": there is no queue; write a table such as [queue.gpu]"));
    }
    return std::move(queues_);
  }

 private:
  void Say(const toml::source_region& where, std::string_view what) {
    mistakes_.push_back(Concat(file_, ":", where.begin.line, ":", where.begin.column, ": ", what));
  }
  void SayIfWrong(const toml::source_region& where, const absl::Status& status) {
    if (!status.ok()) Say(where, std::string(status.message()));
  }

  void ReadTop(const toml::table& top) {
    for (const auto& [key, node] : top) {
      if (key.str() != "queue") {
        Say(key.source(), Concat("unknown table \"", ShownValue(key.str()),
                                 "\"; allowed: tables such as [queue.gpu]"));
      } else if (const toml::table* queues = node.as_table()) {
        for (const auto& [name, queue] : *queues) ReadQueue(name, queue);
      } else {
        Say(node.source(), "queue must be tables such as [queue.gpu]");
      }
    }
  }

  void ReadQueue(const toml::key& name, const toml::node& node) {
    Queue queue{.name = std::string(name.str())};
    if (const absl::Status status = CheckQueueName(queue.name); !status.ok()) {
      return SayIfWrong(name.source(), status);
    }
    const toml::table* table = node.as_table();
    if (table == nullptr) {
      return Say(node.source(), Concat("queue.", queue.name, " must be a table"));
    }
    for (const auto& [key, value] : *table) ReadSetting(key, value, queue);
    for (const std::string& needed : NeededKeys()) {
      if (!table->contains(needed)) {
        Say(name.source(), Concat("queue ", queue.name, " lacks ", needed));
      }
    }
    queues_.push_back(std::move(queue));
  }

  void ReadSetting(const toml::key& key, const toml::node& node, Queue& queue) {
    const toml::array* list = node.as_array();
    Queue scratch;
    const bool takes_list = SetSetting(key.str(), std::vector<std::string>(), scratch).ok();
    const Value value =
        list != nullptr && takes_list ? Value(WordsOf(key.str(), *list)) : ValueOf(node);
    SayIfWrong(IsSetting(key.str()) ? node.source() : key.source(),
               SetSetting(key.str(), value, queue));
  }

  // The texts of the list. Each of its nodes that is none is noted.
  std::vector<std::string> WordsOf(std::string_view key, const toml::array& list) {
    std::vector<std::string> words;
    for (const toml::node& node : list) {
      const absl::StatusOr<std::string> word = WordOf(key, ValueOf(node));
      SayIfWrong(node.source(), word.status());
      if (word.ok()) words.push_back(*word);
    }
    return words;
  }

  const std::string& file_;
  std::vector<Queue> queues_;
  std::vector<std::string> mistakes_;
};

}  // namespace

absl::StatusOr<std::vector<Queue>> ParseQueues(const std::string& text, const std::string& file) {
  return Reader(file).Read(text);
}

absl::StatusOr<std::vector<Queue>> ReadQueues(const std::string& path) {
  PELAB_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMostFileBytes));
  return ParseQueues(text, path);
}

}  // namespace pelab::queues
