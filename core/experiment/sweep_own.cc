// Items of a document whose encoding or data comes from a file: {name: own, file: mine.pt, alpha:
// [0.5, 1]}, {name: own, file: mine.safetensors, test: long}.
#include <algorithm>
#include <memory>
#include <utility>

#include "core/base/utf8.h"
#include "core/experiment/sweep_reader.h"
#include "core/experiment/yaml_json.h"

namespace pelab::experiment {
namespace {

using Kind = YamlNode::Kind;

constexpr std::string_view kFileRule = "the path of a file, relative to this document";

std::vector<std::string_view> NamesOf(const OwnEncoding& encoding) {
  std::vector<std::string_view> names = {"file"};
  for (const OwnOption& option : encoding.options) names.push_back(option.name);
  return names;
}

const OwnOption* FindOption(const OwnEncoding& encoding, std::string_view name) {
  for (const OwnOption& option : encoding.options) {
    if (option.name == name) return &option;
  }
  return nullptr;
}

}  // namespace

void SweepReader::TakeFile(const std::string& path, std::string_view declaration,
                           const Place& place) {
  DeclarationResult read = ParseDeclaration(declaration);
  if (read.problem.empty() && Sha256Of(read.declaration).empty()) {
    read.problem = "the declaration lacks the file's sha256";
  }
  if (read.problem.empty()) {
    files_[path] = std::move(read.declaration);
    return;
  }
  const std::string shown = Shorten(path, 100);
  violations_.Add(place, shown, "", shown + ": " + read.problem);
  files_[path] = std::nullopt;  // reported here, so its item is not
}

void SweepReader::ReadFileOverride(const Override& override) {
  TakeFile(override.field.substr(kFileOverride.size()), override.value,
           {0, 0, Shorten(override.field, 100)});
}

void SweepReader::ReadFiles() {
  const Source source = Find("files");
  if (source.node == nullptr || source.node->kind == Kind::kNull) return;
  if (source.node->kind != Kind::kMap) {
    Say(source, "a map",
        "files must be a map from paths to what the files declare, not " + InWords(*source.node));
    return;
  }
  for (const YamlMember& member : source.node->members) {
    TakeFile(member.key->text, JsonOf(*member.value).dump(),
             {member.key->line, member.key->column, "files." + Shorten(member.key->text, 100)});
  }
}

const Declaration* SweepReader::FileOf(const std::string& kind, const Source& source) {
  const YamlNode* file = MemberOf(*source.node, "file");
  if (file == nullptr) {
    const bool pe = kind == "pe";
    Say(source, std::string(kFileRule),
        pe ? "an own encoding needs a file: write {name: own, file: mine.pt}; pelab check mine.pt "
             "says what is in one"
           : "own data needs a file: write {name: own, file: mine.safetensors}; pelab check "
             "mine.safetensors says what is in one");
    return nullptr;
  }
  const Source place = {file, source.path + ".file"};
  if (file->kind != Kind::kScalar) {
    Say(place, std::string(kFileRule),
        source.path + ".file must be " + std::string(kFileRule) + ", not " + InWords(*file));
    return nullptr;
  }
  const auto found = files_.find(file->text);
  if (found == files_.end()) {
    Say(place, std::string(kFileRule),
        "the file " + InWords(*file) +
            " did not come with this document; pelab run and pelab submit read it and send it, and "
            "so does submit(…, own_files={" +
            InWords(*file) + ": PATH}) in Python");
    return nullptr;
  }
  return found->second ? &*found->second : nullptr;
}

std::vector<catalog::Values> SweepReader::ReadOwnOptions(const OwnEncoding& encoding,
                                                         const Source& source) {
  std::vector<catalog::Values> variants = {{}};
  for (const YamlMember& member : source.node->members) {
    const std::string& key = member.key->text;
    if (key == "name" || key == "file") continue;
    const Source value = {member.value.get(), source.path + "." + key};
    const OwnOption* option = FindOption(encoding, key);
    if (option == nullptr) {
      Say({member.key.get(), value.path}, SortedList(NamesOf(encoding)),
          UnknownName("option of encoding " + encoding.name, InWords(*member.key), key,
                      NamesOf(encoding)));
      continue;
    }
    const std::string name = "pe." + key;
    const catalog::Field field = option->ToField(name);
    const std::vector<Source> elements = ValuesIn(field, value);
    if (variants.size() * elements.size() > kMaxCombinations) {
      Say(value, "at most " + std::to_string(kMaxCombinations),
          "the lists of this pe make more than " + std::to_string(kMaxCombinations) + " variants");
      return {};
    }
    std::vector<catalog::Values> grown;
    for (const Source& element : elements) {
      const auto read = ReadYamlValue(field, *element.node);
      if (!read) Say(element, catalog::Allowed(field), MustBe(field, *element.node));
      for (std::size_t i = 0; read && i < variants.size(); ++i) {
        grown.push_back(variants[i]);
        grown.back()[key] = *read;
      }
    }
    if (!grown.empty()) variants = std::move(grown);
  }
  return variants;
}

bool SweepReader::RefuseDeclared(const catalog::Field& field, const Source& source) {
  if (field.owner != catalog::OwnPe().name) return false;
  const std::string name(field.name);
  const bool pe = name.starts_with("pe.");
  Say(source, "",
      name + (pe ? " is what the file of an own encoding declares; options of the encoding stand "
                   "beside its file: {name: own, file: mine.pt, alpha: [0.5, 1]}"
                 : " is what a file of data declares; the split to test on stands beside the file: "
                   "{name: own, file: mine.safetensors, test: [test, long]}"));
  return true;
}

void SweepReader::RefuseOverriddenFiles() {
  for (const Setting& override : plan_.overrides) {
    for (const Item& item : plan_.tasks) {
      const auto same = [&](const Setting& held) { return held.field == override.field; };
      if (item.name != catalog::OwnTask().name ||
          std::none_of(item.settings.begin(), item.settings.end(), same)) {
        continue;
      }
      violations_.Add(
          override.place, catalog::ToText(override.value), "",
          override.field + " cannot be set for " + item.place.path + ": it is what the file holds");
      break;
    }
  }
}

void SweepReader::ReadOwn(const std::string& kind, const Source& source, std::vector<Item>* items) {
  const Declaration* file = FileOf(kind, source);
  if (file == nullptr) return;
  const auto* encoding = std::get_if<OwnEncoding>(file);
  const auto* task = std::get_if<OwnTask>(file);
  if (kind == "pe" && encoding != nullptr) return ReadOwnEncoding(*encoding, source, items);
  if (kind == "task" && task != nullptr) return ReadOwnTask(*task, source, items);
  Say(source, std::string(kFileRule),
      kind == "pe" ? "the file of this pe holds data, not an encoding; data stands under task"
                   : "the file of this task holds an encoding, not data; an encoding stands under "
                     "pe");
}

void SweepReader::ReadOwnEncoding(const OwnEncoding& encoding, const Source& source,
                                  std::vector<Item>* items) {
  const Place place = {source.node->line, source.node->column, source.path};
  const auto setting = [&](std::string_view field, catalog::Value value) {
    return Setting{std::string(field), std::move(value), place};
  };
  const auto declared = std::make_shared<const OwnEncoding>(encoding);
  for (const catalog::Values& options : ReadOwnOptions(encoding, source)) {
    Item item{std::string(catalog::OwnPe().name), place, {}};
    item.encoding = declared;
    item.settings = {setting("pe.encoding", encoding.name), setting("pe.file", encoding.sha256),
                     setting("pe.methods", encoding.methods),
                     setting("pe.causal_only", encoding.causal_only),
                     setting("pe.options", OptionsText(encoding, options))};
    items->push_back(std::move(item));
  }
}

void SweepReader::ReadOwnTask(const OwnTask& task, const Source& source, std::vector<Item>* items) {
  const Place place = {source.node->line, source.node->column, source.path};
  const auto declared = std::make_shared<const OwnTask>(task);
  const std::vector<const OwnSplit*> tests = TestsOf(task, source);
  std::vector<std::string>& splits = plan_.splits[task.sha256];
  splits.clear();
  for (const OwnSplit& split : task.splits) splits.push_back(split.name);
  for (const std::vector<Setting>& set : SettingsOf(task, source)) {
    for (const OwnSplit* test : tests) {
      Item item{std::string(catalog::OwnTask().name), place, set};
      for (const auto& [field, value] : FieldsOf(task, *test)) {
        item.settings.push_back({field, value, place});
      }
      item.chance_nonzero = test->chance_nonzero;
      item.data = declared;
      items->push_back(std::move(item));
    }
  }
}

std::vector<const OwnSplit*> SweepReader::TestsOf(const OwnTask& task, const Source& source) {
  const YamlNode* named = MemberOf(*source.node, "test");
  if (named == nullptr) {
    if (const OwnSplit* test = task.Find("test")) return {test};
    Say(source, task.TestSplits(),
        "the data " + task.name + " has no split named test; say which to test on with test: " +
            task.splits[1].name + " (allowed: " + task.TestSplits() + ")");
    return {};
  }
  std::vector<const OwnSplit*> tests;
  for (const Source& element : Elements({named, source.path + ".test"})) {
    const OwnSplit* split = task.Find(element.node->text);
    if (element.node->kind != Kind::kScalar || split == nullptr || split->name == kTrainSplit) {
      Say(element, task.TestSplits(),
          element.path + " must be one of " + task.TestSplits() + ", a split of " + task.name +
              ", not " + InWords(*element.node));
    } else if (std::find(tests.begin(), tests.end(), split) != tests.end()) {
      Say(element, "each split once", "split " + split->name + " is there twice");
    } else {
      tests.push_back(split);
    }
  }
  return tests;
}

std::vector<std::vector<Setting>> SweepReader::SettingsOf(const OwnTask& task,
                                                          const Source& source) {
  constexpr std::string_view kAllowed = "file, label_space, scored_classes, test";
  const catalog::Values held = FieldsOf(task, task.splits[1]);
  std::vector<std::vector<Setting>> variants = {{}};
  for (const YamlMember& member : source.node->members) {
    const std::string& key = member.key->text;
    if (key == "name" || key == "file" || key == "test") continue;
    const Source value = {member.value.get(), source.path + "." + key};
    const catalog::Field* field = catalog::FindField("task." + key, catalog::OwnTask().name);
    if (field == nullptr) {
      Say({member.key.get(), value.path}, std::string(kAllowed),
          UnknownName("key of own data", InWords(*member.key), key,
                      {"file", "label_space", "scored_classes", "test"}));
    } else if (held.count(field->name) > 0) {
      Say({member.key.get(), value.path}, std::string(kAllowed),
          value.path +
              " cannot be set: it is what the file holds; allowed here: " + std::string(kAllowed));
    } else if (!catalog::IsOf(*field, "", catalog::OwnTask().name)) {
      Say({member.key.get(), value.path}, std::string(kAllowed),
          value.path + " is for data that pelab generates; allowed here: " + std::string(kAllowed));
    } else {
      std::vector<std::vector<Setting>> grown;
      for (const Source& element : ValuesIn(*field, value)) {
        const auto setting = ReadSetting({field}, element);
        for (std::size_t i = 0; setting && i < variants.size(); ++i) {
          grown.push_back(variants[i]);
          grown.back().push_back(*setting);
        }
      }
      if (!grown.empty()) variants = std::move(grown);
    }
  }
  return variants;
}

}  // namespace pelab::experiment
