#include "core/experiment/sweep_reader.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <utility>

#include "core/base/utf8.h"
#include "core/experiment/sweep_name.h"

namespace pelab::experiment {
namespace {

using catalog::Entry;
using catalog::Field;
using Kind = YamlNode::Kind;

constexpr std::string_view kTopLevel[] = {"name",    "protocol", "pe",        "task",
                                          "seed",    "model",    "train",     "axes",
                                          "exclude", "analyses", "resources", "order"};
// The key under which `pelab settle` adds declarations to a sweep. People do not write it.
constexpr std::string_view kFilesKey = "files";
constexpr std::string_view kSeedRule =
    "an integer from 0 to 9007199254740991, an inclusive range such as 0..4, or a list of them";

std::vector<std::string_view> NamesOf(const std::vector<Entry>& entries) {
  std::vector<std::string_view> names;
  names.reserve(entries.size());
  for (const Entry& entry : entries) names.push_back(entry.name);
  return names;
}

// A copy of the tree with line and column 0: values from the command line have no place in the
// document.
YamlPointer WithoutPlaces(const YamlNode& node) {
  auto copy = std::make_shared<YamlNode>(node);
  copy->line = 0;
  copy->column = 0;
  for (YamlPointer& item : copy->items) item = WithoutPlaces(*item);
  for (YamlMember& member : copy->members) {
    member = {WithoutPlaces(*member.key), WithoutPlaces(*member.value)};
  }
  return copy;
}

}  // namespace

SweepReader::SweepReader(const YamlNode* root, const std::vector<Override>& overrides,
                         Violations* violations)
    : root_(root), violations_(*violations) {
  for (const Override& override : overrides) ReadOverride(override);
}

SweepPlan SweepReader::Read() {
  if (root_ == nullptr) return std::move(plan_);
  if (root_->kind != Kind::kMap) {
    Say({root_, ""}, "a map",
        "the document must be a map with name, pe and task, not " + InWords(*root_));
    return std::move(plan_);
  }
  if (MemberOf(*root_, "sweep") != nullptr && MemberOf(*root_, "claims") != nullptr) {
    Say({root_, ""}, "a sweep",
        "this is a claim sheet and no sweep: pelab settle tests its claims");
    return std::move(plan_);
  }
  CheckKeys();
  ReadName();
  ReadProtocols();
  ReadFiles();
  ReadItems("pe", catalog::Pes(), &plan_.pes);
  ReadItems("task", catalog::Tasks(), &plan_.tasks);
  RefuseOverriddenFiles();
  const Source seed = Find("seed");
  if (seed.node == nullptr) {
    plan_.seeds.Add({0, 0});
  } else {
    ReadSeeds(seed, &plan_.seeds);
  }
  ReadSection("model");
  ReadSection("train");
  ReadAxes();
  ReadExclude();
  ReadAnalyses();
  ReadResources();
  ReadOrder();
  return std::move(plan_);
}

void SweepReader::ReadOverride(const Override& override) {
  if (override.field.rfind(kFileOverride, 0) == 0) return ReadFileOverride(override);
  const std::string path = "--set " + Shorten(override.field, 100);
  YamlResult parsed = ParseYaml(override.value, "value");
  for (Violation& violation : parsed.violations) {
    violation.line = violation.column = 0;
    violation.path = path;
    violation.value = Shorten(override.value, 100);
    violations_.Add(std::move(violation));
  }
  if (parsed.root == nullptr) return;
  const YamlPointer value = WithoutPlaces(*parsed.root);
  if (override.field == "name" || override.field == "protocol" || override.field == "seed") {
    top_overrides_[override.field] = value;
  } else {
    ReadFieldOverride(override, {value.get(), path});
  }
}

void SweepReader::ReadFieldOverride(const Override& override, const Source& source) {
  FieldRows rows;
  bool of_analysis = false;
  for (const Field& field : catalog::Fields()) {
    if (field.name != override.field) continue;
    rows.push_back(&field);
    of_analysis = catalog::IsAnalysisField(field);
  }
  if (rows.empty()) {
    YamlNode key;
    key.kind = Kind::kScalar;
    key.text = override.field;
    Say({&key, source.path}, "", UnknownField(key));
    return;
  }
  if (RefuseDeclared(*rows[0], source)) return;
  auto setting = ReadSetting(rows, source);
  if (!setting) return;
  std::vector<Setting>& settings = of_analysis ? analysis_overrides_ : plan_.overrides;
  const auto is_same = [&](const Setting& earlier) { return earlier.field == setting->field; };
  settings.erase(std::remove_if(settings.begin(), settings.end(), is_same), settings.end());
  settings.push_back(std::move(*setting));
}

void SweepReader::CheckKeys() {
  for (const YamlMember& member : root_->members) {
    const std::string& key = member.key->text;
    if (key == kFilesKey) continue;
    if (std::find(std::begin(kTopLevel), std::end(kTopLevel), key) != std::end(kTopLevel)) continue;
    const std::vector<std::string_view> known(std::begin(kTopLevel), std::end(kTopLevel));
    Say({member.key.get(), key}, SortedList(known),
        UnknownName("key", InWords(*member.key), key, known));
  }
}

SweepReader::Source SweepReader::Find(std::string_view key) const {
  const auto override = top_overrides_.find(key);
  if (override != top_overrides_.end())
    return {override->second.get(), "--set " + std::string(key)};
  return {MemberOf(*root_, key), std::string(key)};
}

void SweepReader::ReadName() {
  const Source source = Find("name");
  const std::string rule(kSweepNameRule);
  if (source.node == nullptr) {
    Say({root_, "name"}, rule, "name is missing; it must be " + rule);
  } else if (source.node->kind != Kind::kScalar || !IsSweepName(source.node->text)) {
    Say(source, rule, "name must be " + rule + ", not " + InWords(*source.node));
  } else {
    plan_.name = source.node->text;
  }
}

void SweepReader::ReadProtocols() {
  const Source source = Find("protocol");
  if (source.node != nullptr) {
    for (const Source& element : Elements(source)) ReadProtocol(element);
  }
  if (plan_.protocols.empty()) plan_.protocols.push_back({"clean", {}});
}

void SweepReader::ReadProtocol(const Source& source) {
  const YamlNode& node = *source.node;
  const std::vector<std::string_view> known = NamesOf(catalog::Protocols());
  const auto is_same = [&](const ProtocolChoice& earlier) { return earlier.name == node.text; };
  if (node.kind != Kind::kScalar) {
    Say(source, SortedList(known),
        "protocol must be one of " + SortedList(known) + " or a list of them, not " +
            InWords(node));
  } else if (catalog::FindProtocol(node.text) == nullptr) {
    Say(source, SortedList(known), UnknownName("protocol", InWords(node), node.text, known));
  } else if (std::any_of(plan_.protocols.begin(), plan_.protocols.end(), is_same)) {
    Say(source, "each protocol once", "protocol " + node.text + " is there twice");
  } else {
    plan_.protocols.push_back({node.text, {node.line, node.column, source.path}});
  }
}

void SweepReader::ReadSeeds(const Source& source, SeedSet* seeds) {
  const bool none = source.node->kind == Kind::kScalar && source.node->text == kNoSeeds;
  if (none && seeds == &plan_.seeds) return;
  for (const Source& element : Elements(source)) {
    const YamlNode& node = *element.node;
    const std::string rule(kSeedRule);
    const SeedText text = node.kind == Kind::kScalar ? ParseSeeds(node.text) : SeedText{};
    if (!text.range) {
      const bool empty_range = text.problem.rfind("range", 0) == 0;
      Say(element, rule,
          empty_range ? text.problem : "seed must be " + rule + ", not " + InWords(node));
    } else if (const auto twice = seeds->Add(*text.range)) {
      Say(element, "each seed once", "seed " + std::to_string(*twice) + " is there twice");
    }
  }
}

void SweepReader::ReadItems(const std::string& kind, const std::vector<Entry>& entries,
                            std::vector<Item>* items) {
  const Source source = Find(kind);
  if (source.node == nullptr) {
    const std::string known = SortedList(NamesOf(entries));
    Say({root_, kind}, known, kind + " is missing; known: " + known);
    return;
  }
  for (const Source& element : Elements(source)) ReadItem(kind, entries, element, items);
}

void SweepReader::ReadItem(const std::string& kind, const std::vector<Entry>& entries,
                           const Source& source, std::vector<Item>* items) {
  const YamlNode* name = source.node;
  if (source.node->kind == Kind::kMap) {
    name = MemberOf(*source.node, "name");
    if (name == nullptr) {
      Say(source, "a name",
          "this " + kind + " has no name: write {name: " + std::string(entries.back().name) +
              ", …}");
      return;
    }
  }
  const std::string_view own = kind == "pe" ? catalog::OwnPe().name : catalog::OwnTask().name;
  if (name->kind == Kind::kScalar && name->text == own) return ReadOwn(kind, source, items);
  const std::vector<std::string_view> known = NamesOf(entries);
  if (name->kind != Kind::kScalar) {
    Say({name, source.path}, SortedList(known),
        kind + " must be a name or a map with a name, not " + InWords(*name));
    return;
  }
  if (std::find(known.begin(), known.end(), name->text) == known.end()) {
    // Always in quotes: the name is text even if it looks like a number.
    const std::string hint = kind == "pe"
                                 ? "; one of your own is {name: own, file: mine.pt}"
                                 : "; your own data is {name: own, file: mine.safetensors}";
    Say({name, source.path}, SortedList(known),
        UnknownName(kind, InWords(*name), name->text, known) +
            (catalog::DidYouMean(name->text, known).empty() ? hint : ""));
    return;
  }
  ReadItemFields(kind, source,
                 {name->text, {source.node->line, source.node->column, source.path}, {}}, items);
}

void SweepReader::ReadItemFields(const std::string& kind, const Source& source, Item item,
                                 std::vector<Item>* items) {
  std::vector<Item> variants = {std::move(item)};
  const std::string prefix = kind + ".";
  for (const YamlMember& member : source.node->members) {
    const std::string& key = member.key->text;
    if (key == "name") continue;
    const Field* field = catalog::FindField(prefix + key, variants[0].name);
    if (field == nullptr) {
      std::vector<std::string_view> known;
      for (const Field& candidate : catalog::Fields()) {
        const bool owned = candidate.owner.empty() || candidate.owner == variants[0].name;
        if (owned && candidate.name.rfind(kind + ".", 0) == 0) {
          known.push_back(candidate.name.substr(kind.size() + 1));
        }
      }
      const std::string what = "field of " + kind + " " + variants[0].name;
      const std::string why =
          kind == "pe" ? catalog::WhyNoField(variants[0].name, prefix + key) : "";
      Say({member.key.get(), source.path + "." + key}, SortedList(known),
          (known.empty() ? "unknown " + what + ": " + InWords(*member.key) + "; it has no fields"
                         : UnknownName(what, InWords(*member.key), key, known)) +
              (why.empty() ? "" : "; " + why));
      continue;
    }
    // A list makes one item per value, for this PE or task alone.
    const Source value = {member.value.get(), source.path + "." + key};
    const std::vector<Source> values = ValuesIn(*field, value);
    if (items->size() + variants.size() * values.size() > kMaxCombinations) {
      Say(value, "at most " + std::to_string(kMaxCombinations),
          "the lists of this " + kind + " make more than " + std::to_string(kMaxCombinations) +
              " variants");
      return;
    }
    std::vector<Item> grown;
    for (const Source& element : values) {
      const auto setting = ReadSetting({field}, element);
      for (std::size_t i = 0; setting && i < variants.size(); ++i) {
        grown.push_back(variants[i]);
        grown.back().settings.push_back(*setting);
      }
    }
    if (!grown.empty()) variants = std::move(grown);
  }
  for (Item& variant : variants) items->push_back(std::move(variant));
}

void SweepReader::ReadSection(const std::string& section) {
  const Source source = Find(section);
  if (source.node == nullptr || source.node->kind == Kind::kNull) return;
  if (source.node->kind != Kind::kMap) {
    Say(source, "a map", section + " must be a map of fields, not " + InWords(*source.node));
    return;
  }
  const std::string prefix = section + ".";
  for (const YamlMember& member : source.node->members) {
    const std::string& key = member.key->text;
    const Source value = {member.value.get(), prefix + key};
    if (const Field* field = catalog::FindField(value.path, "")) {
      if (auto setting = ReadSetting({field}, value)) plan_.fixed.push_back(std::move(*setting));
      continue;
    }
    std::vector<std::string_view> known;
    for (const Field& candidate : catalog::Fields()) {
      if (candidate.name.rfind(section + ".", 0) == 0)
        known.push_back(candidate.name.substr(section.size() + 1));
    }
    Say({member.key.get(), value.path}, SortedList(known),
        UnknownName("field of " + section, InWords(*member.key), key, known));
  }
}

void SweepReader::ReadResources() {
  const Source source = Find("resources");
  if (source.node == nullptr || source.node->kind == Kind::kNull) return;
  if (source.node->kind != Kind::kMap) {
    Say(source, "a map",
        "resources must be a map with device and memory, not " + InWords(*source.node));
    return;
  }
  for (const YamlMember& member : source.node->members) {
    const Source value = {member.value.get(), "resources." + member.key->text};
    if (member.key->text == "memory") {
      ReadMemory(value);
    } else if (member.key->text != "device") {
      Say({member.key.get(), value.path}, "device, memory",
          UnknownName("resource", InWords(*member.key), member.key->text, {"device", "memory"}));
    } else if (const std::string& device = value.node->text;
               value.node->kind == Kind::kScalar &&
               (device == "any" || device == "gpu" || device == "cpu")) {
      plan_.resources.device = device;
    } else {
      Say(value, "any, gpu, cpu",
          "resources.device must be one of any, gpu, cpu, not " + InWords(*value.node));
    }
  }
}

void SweepReader::ReadOrder() {
  const Source source = Find("order");
  if (source.node == nullptr || source.node->kind == Kind::kNull) return;
  constexpr std::pair<std::string_view, Order> kOrders[] = {{"seeds_first", Order::kSeedsFirst},
                                                            {"cells_first", Order::kCellsFirst},
                                                            {"random", Order::kRandom}};
  for (const auto& [name, order] : kOrders) {
    if (source.node->kind != Kind::kScalar || source.node->text != name) continue;
    plan_.order = order;
    return;
  }
  Say(source, "seeds_first, cells_first, random",
      "order must be one of seeds_first, cells_first, random, not " + InWords(*source.node));
}

void SweepReader::ReadMemory(const Source& source) {
  static const std::map<std::string_view, std::uint64_t> units = {{"", 1},
                                                                  {"B", 1},
                                                                  {"KB", 1000},
                                                                  {"MB", 1000000},
                                                                  {"GB", 1000000000},
                                                                  {"TB", 1000000000000},
                                                                  {"KiB", 1ULL << 10},
                                                                  {"MiB", 1ULL << 20},
                                                                  {"GiB", 1ULL << 30},
                                                                  {"TiB", 1ULL << 40}};
  constexpr std::uint64_t kLeast = std::uint64_t{1} << 20;  // less is a number without its unit
  constexpr std::uint64_t kMost = std::uint64_t{1} << 50;
  if (source.node->kind == Kind::kScalar) {
    const std::string& text = source.node->text;
    std::uint64_t amount = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), amount);
    std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
    while (!unit.empty() && unit[0] == ' ') unit.remove_prefix(1);
    const auto found = units.find(unit);
    if (error == std::errc() && found != units.end() && amount <= kMost / found->second) {
      const std::uint64_t bytes = amount * found->second;
      if (bytes >= kLeast) {
        plan_.resources.memory_bytes = bytes;
        return;
      }
      Say(source, "1MiB to 1024TiB",
          "resources.memory must be at least 1MiB, not " + InWords(*source.node) +
              "; write 8GiB for gibibytes");
      return;
    }
  }
  const std::string rule = "a number of bytes up to 1024 TiB, with a unit if you like: 8GiB, 500MB";
  Say(source, rule, "resources.memory must be " + rule + ", not " + InWords(*source.node));
}

}  // namespace pelab::experiment
