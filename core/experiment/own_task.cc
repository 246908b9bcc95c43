#include "core/experiment/own_task.h"

#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core/catalog/own.h"
#include "core/experiment/declaration_json.h"

namespace pelab::experiment {
namespace {

using Json = nlohmann::json;

// The range that the catalog has for a field of own data.
std::int64_t Ranged(const Json& json, const char* name, const char* field) {
  const catalog::Field& range = *catalog::FindField(field, catalog::OwnTask().name);
  return IntegerMember(json, kTheDeclaration, name, static_cast<std::int64_t>(range.min),
                       static_cast<std::int64_t>(range.max));
}

double ChanceMember(const Json& json, const std::string& where, const char* name) {
  const double chance = NumberMember(json, where, name);
  if (chance < 0 || chance > 1) Fail(where + "." + name + " must be from 0 to 1");
  return chance;
}

OwnSplit ReadSplit(const Json& json, std::int64_t length, const std::set<std::string>& known) {
  if (!json.is_object()) Fail("a split of the declaration is not an object");
  OwnSplit split;
  split.name = TextMember(json, "a split", "name", 100);
  if (!catalog::IsOwnName(split.name)) {
    Fail("a split's name " + Quoted(split.name) + " must be " + std::string(catalog::kOwnNameRule));
  }
  const std::string where = "split " + split.name;
  if (known.count(split.name) > 0) Fail(where + " is declared twice");
  OnlyMembers(json, where,
              {"name", "examples", "targets", "chance", "chance_nonzero", "repeats", "longest"});
  constexpr std::int64_t kMost = 2'000'000'000;
  split.examples = IntegerMember(json, where, "examples", 1, kMost);
  split.targets = IntegerMember(json, where, "targets", 1, kMost);
  split.repeats = IntegerMember(json, where, "repeats", 0, split.examples);
  split.chance = ChanceMember(json, where, "chance");
  if (json.contains("chance_nonzero")) {
    split.chance_nonzero = ChanceMember(json, where, "chance_nonzero");
  }
  if (json.contains("longest")) {
    split.longest = IntegerMember(json, where, "longest", 1, length);
  }
  return split;
}

std::vector<OwnSplit> ReadSplits(const Json& json, std::int64_t length) {
  const auto found = json.find("splits");
  if (found == json.end() || !found->is_array() || found->size() < 2 ||
      found->size() > kMaxOwnSplits) {
    Fail("the declaration's splits must be a list of 2 to " + std::to_string(kMaxOwnSplits));
  }
  std::vector<OwnSplit> splits;
  std::set<std::string> known;
  for (const Json& one : *found) {
    splits.push_back(ReadSplit(one, length, known));
    known.insert(splits.back().name);
  }
  if (splits.front().name != kTrainSplit) Fail("the declaration's first split must be train");
  return splits;
}

OwnTask Read(std::string_view text) {
  DeclaredFile file;
  const Json json = ParseDeclared(
      text, "task",
      {"length", "vocabulary", "classes", "first_label", "targets", "padded", "splits"},
      kMaxTaskBytes, &file);
  OwnTask task;
  task.name = file.name;
  task.sha256 = file.sha256;
  task.bytes = file.bytes;
  task.help = file.help;
  task.length = Ranged(json, "length", "task.length");
  task.vocabulary = Ranged(json, "vocabulary", "task.vocabulary");
  task.classes = Ranged(json, "classes", "task.classes");
  task.first_label = Ranged(json, "first_label", "task.first_label");
  task.padded = FlagMember(json, kTheDeclaration, "padded");
  const std::string targets = TextMember(json, kTheDeclaration, "targets", 20);
  if (targets != "sequence" && targets != "position") {
    Fail("the declaration's targets must be sequence or position, not " + Quoted(targets));
  }
  task.by_position = targets == "position";
  task.splits = ReadSplits(json, task.length);
  return task;
}

}  // namespace

const OwnSplit* OwnTask::Find(std::string_view split) const {
  for (const OwnSplit& one : splits) {
    if (one.name == split) return &one;
  }
  return nullptr;
}

std::string OwnTask::TestSplits() const {
  std::vector<std::string_view> names;
  for (const OwnSplit& split : splits) {
    if (split.name != kTrainSplit) names.push_back(split.name);
  }
  return Listed(names);
}

OwnTaskResult ParseOwnTask(std::string_view json) {
  OwnTaskResult result;
  try {
    result.task = Read(json);
  } catch (const DeclarationProblem& problem) {
    result.problem = problem.text;
  }
  return result;
}

std::string ToJson(const OwnTask& task) {
  nlohmann::ordered_json json = {{"format", 1}, {"kind", "task"}, {"name", task.name}};
  if (!task.sha256.empty()) json["sha256"] = task.sha256;
  if (task.bytes > 0) json["bytes"] = task.bytes;
  json["length"] = task.length;
  json["vocabulary"] = task.vocabulary;
  json["classes"] = task.classes;
  json["first_label"] = task.first_label;
  json["targets"] = task.by_position ? "position" : "sequence";
  json["padded"] = task.padded;
  json["splits"] = nlohmann::ordered_json::array();
  for (const OwnSplit& split : task.splits) {
    nlohmann::ordered_json one = {{"name", split.name},
                                  {"examples", split.examples},
                                  {"targets", split.targets},
                                  {"chance", split.chance}};
    if (split.chance_nonzero) one["chance_nonzero"] = *split.chance_nonzero;
    one["repeats"] = split.repeats;
    if (split.longest > 0) one["longest"] = split.longest;
    json["splits"].push_back(std::move(one));
  }
  if (!task.help.empty()) json["help"] = task.help;
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

catalog::Values FieldsOf(const OwnTask& task, const OwnSplit& test) {
  const OwnSplit& train = task.splits.front();
  catalog::Values values = {
      {"task.data", task.name},
      {"task.file", task.sha256},
      {"task.test", test.name},
      {"task.targets", std::string(task.by_position ? "position" : "sequence")},
      {"task.length", task.length},
      {"task.vocabulary", task.vocabulary},
      {"task.classes", task.classes},
      {"task.first_label", task.first_label},
      {"task.padded", task.padded},
      {"task.chance", test.chance},
      {"task.train_examples", train.examples},
      {"task.test_examples", test.examples}};
  if (task.by_position) {
    values["task.train_targets"] = train.targets;
    values["task.test_targets"] = test.targets;
  }
  return values;
}

}  // namespace pelab::experiment
