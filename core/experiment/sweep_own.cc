// Items of a document with an encoding from a file: {name: own, file: mine.pt, alpha: [0.5, 1]}.
#include <algorithm>
#include <utility>

#include "core/base/utf8.h"
#include "core/experiment/sweep_reader.h"
#include "core/experiment/yaml_json.h"

namespace pelab::experiment {
namespace {

using Kind = YamlNode::Kind;

constexpr std::string_view kFileRule = "the path of an encoding's file, relative to this document";

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
  OwnEncodingResult read = ParseOwnEncoding(declaration);
  if (read.problem.empty() && read.encoding.sha256.empty()) {
    read.problem = "the declaration lacks the file's sha256";
  }
  if (read.problem.empty()) {
    files_[path] = std::move(read.encoding);
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

const OwnEncoding* SweepReader::FileOf(const Source& source) {
  const YamlNode* file = nullptr;
  for (const YamlMember& member : source.node->members) {
    if (member.key->text == "file") file = member.value.get();
  }
  if (file == nullptr) {
    Say(source, std::string(kFileRule),
        "an own encoding needs a file: write {name: own, file: mine.pt}; pelab check mine.pt says "
        "what is in one");
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
            " did not come with this document; pelab run and pelab "
            "submit read it and send it");
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
  Say(source, "",
      name +
          " is what the file of an own encoding declares; options of the encoding stand beside "
          "its file: {name: own, file: mine.pt, alpha: [0.5, 1]}");
  return true;
}

void SweepReader::ReadOwn(const Source& source, std::vector<Item>* items) {
  const Place place = {source.node->line, source.node->column, source.path};
  const OwnEncoding* encoding = FileOf(source);
  if (encoding == nullptr) return;
  const auto setting = [&](std::string_view field, catalog::Value value) {
    return Setting{std::string(field), std::move(value), place};
  };
  for (const catalog::Values& options : ReadOwnOptions(*encoding, source)) {
    Item item{std::string(catalog::OwnPe().name), place, {}};
    item.settings = {setting("pe.encoding", encoding->name), setting("pe.file", encoding->sha256),
                     setting("pe.methods", encoding->methods),
                     setting("pe.causal_only", encoding->causal_only),
                     setting("pe.options", OptionsText(*encoding, options))};
    items->push_back(std::move(item));
  }
}

}  // namespace pelab::experiment
