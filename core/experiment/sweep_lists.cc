// The second half of SweepReader: axes, exclude rules and analyses, and the helpers that all parts
// share.
#include <algorithm>
#include <utility>

#include "core/base/utf8.h"
#include "core/experiment/analysis.h"
#include "core/experiment/sweep_reader.h"

namespace pelab::experiment {
namespace {

using catalog::Entry;
using catalog::Field;
using Kind = YamlNode::Kind;

constexpr std::size_t kMaxRules = 200;

// The names of all job fields, each once.
std::vector<std::string_view> JobFieldNames() {
  std::vector<std::string_view> names;
  for (const Field& field : catalog::Fields()) {
    if (catalog::IsAnalysisField(field)) continue;
    if (std::find(names.begin(), names.end(), field.name) == names.end())
      names.push_back(field.name);
  }
  return names;
}

}  // namespace

void SweepReader::ReadAxes() {
  const Source source = Find("axes");
  if (source.node == nullptr || source.node->kind == Kind::kNull) return;
  if (source.node->kind != Kind::kMap) {
    Say(source, "a map",
        "axes must be a map from fields to lists of values, not " + InWords(*source.node));
    return;
  }
  for (const YamlMember& member : source.node->members) ReadAxis(member);
}

void SweepReader::ReadAxis(const YamlMember& member) {
  const std::string& field = member.key->text;
  const std::string path = "axes." + field;
  const FieldRows rows = RowsOf(member, path);
  if (rows.empty() || RefuseDeclared(*rows[0], {member.key.get(), path})) return;
  const auto is_field = [&](const Setting& setting) { return setting.field == field; };
  if (std::any_of(plan_.overrides.begin(), plan_.overrides.end(), is_field)) return;
  Axis axis{field, {member.key->line, member.key->column, path}, {}};
  for (const Source& element : ValuesIn(*rows[0], {member.value.get(), path})) {
    if (auto setting = ReadSetting(rows, element)) axis.values.push_back(std::move(*setting));
  }
  RefuseSetAndSwept(axis);
  if (!axis.values.empty()) plan_.axes.push_back(std::move(axis));
}

void SweepReader::RefuseSetAndSwept(const Axis& axis) {
  const auto refuse = [&](const std::vector<Setting>& settings) {
    for (const Setting& setting : settings) {
      if (setting.field != axis.field) continue;
      violations_.Add(axis.place, axis.field, "",
                      axis.field + " is an axis here and set in line " +
                          std::to_string(setting.place.line) + "; it can be only one of them");
    }
  };
  refuse(plan_.fixed);
  for (const Item& item : plan_.pes) refuse(item.settings);
  for (const Item& item : plan_.tasks) refuse(item.settings);
}

void SweepReader::ReadExclude() {
  const Source source = Find("exclude");
  if (source.node == nullptr || source.node->kind == Kind::kNull) return;
  if (source.node->kind == Kind::kList && source.node->items.empty()) return;
  const std::vector<Source> rules = Elements(source);
  if (rules.size() > kMaxRules) {
    Say(source, "at most " + std::to_string(kMaxRules),
        "exclude has " + std::to_string(rules.size()) + " rules; at most " +
            std::to_string(kMaxRules) + " are allowed (a rule may list several values)");
    return;
  }
  for (const Source& rule : rules) ReadRule(rule);
}

void SweepReader::ReadRule(const Source& source) {
  if (source.node->kind != Kind::kMap || source.node->members.empty()) {
    Say(source, "a map",
        "an exclude rule must be a map such as {pe: alibi, task: counting}, not " +
            (source.node->kind == Kind::kMap ? "an empty one" : InWords(*source.node)));
    return;
  }
  ExcludeRule rule;
  rule.place = {source.node->line, source.node->column, source.path};
  for (const YamlMember& member : source.node->members) {
    const Source value = {member.value.get(), source.path + "." + member.key->text};
    if (member.key->text == "protocol") {
      ReadRuleNames("protocol", catalog::Protocols(), value, &rule.protocols);
    } else if (member.key->text == "pe") {
      ReadRuleNames("pe", catalog::PesAndOwn(), value, &rule.pes);
    } else if (member.key->text == "task") {
      ReadRuleNames("task", catalog::TasksAndOwn(), value, &rule.tasks);
    } else if (member.key->text == "seed") {
      ReadSeeds(value, &rule.seeds.emplace());
    } else {
      ReadRuleField(member, value, &rule);
    }
  }
  plan_.rules.push_back(std::move(rule));
}

void SweepReader::ReadRuleNames(const std::string& kind, const std::vector<Entry>& entries,
                                const Source& source, std::set<std::string, std::less<>>* names) {
  std::vector<std::string_view> known;
  known.reserve(entries.size());
  for (const Entry& entry : entries) known.push_back(entry.name);
  for (const Source& element : Elements(source)) {
    const YamlNode& node = *element.node;
    if (node.kind != Kind::kScalar) {
      Say(element, SortedList(known),
          kind + " must be a name or a list of names, not " + InWords(node));
    } else if (std::find(known.begin(), known.end(), node.text) == known.end()) {
      Say(element, SortedList(known), UnknownName(kind, InWords(node), node.text, known));
    } else {
      names->insert(node.text);
    }
  }
}

void SweepReader::ReadRuleField(const YamlMember& member, const Source& source, ExcludeRule* rule) {
  const FieldRows rows = RowsOf(member, source.path);
  if (rows.empty()) return;
  for (const Source& element : ValuesIn(*rows[0], source)) {
    auto setting = ReadSetting(rows, element);
    if (setting) rule->fields[member.key->text].insert(std::move(setting->value));
  }
}

void SweepReader::ReadAnalyses() {
  const Source source = Find("analyses");
  if (source.node == nullptr) {
    YamlNode name;
    name.kind = Kind::kScalar;
    name.text = "head_ablation";
    ReadAnalysis({&name, "analyses"});
  } else if (source.node->kind != Kind::kList || !source.node->items.empty()) {
    for (const Source& element : Elements(source)) ReadAnalysis(element);
  }
  for (const Setting& setting : analysis_overrides_) {
    const auto has_it = [&](const Analysis& analysis) {
      return analysis.parameters.count(setting.field) > 0;
    };
    if (std::any_of(plan_.analyses.begin(), plan_.analyses.end(), has_it)) continue;
    violations_.Add(setting.place, catalog::ToText(setting.value), "",
                    setting.field + " belongs to an analysis that this sweep does not ask for");
  }
}

void SweepReader::ReadAnalysis(const Source& source) {
  std::vector<std::string_view> known;
  for (const Entry& entry : catalog::Analyses()) known.push_back(entry.name);
  const YamlNode* name = MemberOf(*source.node, "name");
  if (name == nullptr) name = source.node;
  if (name->kind != Kind::kScalar) {
    Say(source, SortedList(known),
        "an analysis must be a name or a map with a name, not " + InWords(*name));
    return;
  }
  if (catalog::FindAnalysis(name->text) == nullptr) {
    Say({name, source.path}, SortedList(known),
        UnknownName("analysis", InWords(*name), name->text, known));
    return;
  }
  catalog::Values set;
  for (const YamlMember& member : source.node->members) {
    if (member.key->text == "name") continue;
    const Field* field = catalog::FindField(name->text + "." + member.key->text, name->text);
    if (field == nullptr) {
      std::vector<std::string_view> parameters;
      for (const Field& candidate : catalog::Fields()) {
        if (candidate.owner == name->text)
          parameters.push_back(candidate.name.substr(name->text.size() + 1));
      }
      Say({member.key.get(), source.path + "." + member.key->text}, SortedList(parameters),
          UnknownName("field of analysis " + name->text, InWords(*member.key), member.key->text,
                      parameters));
      continue;
    }
    auto setting = ReadSetting({field}, {member.value.get(), source.path + "." + member.key->text});
    if (setting) set[setting->field] = std::move(setting->value);
  }
  for (const Setting& setting : analysis_overrides_) set[setting.field] = setting.value;
  AddAnalysis(name->text, set, source);
}

// Adds the analysis once for each protocol under which its parameters resolve differently.
void SweepReader::AddAnalysis(const std::string& name, const catalog::Values& set,
                              const Source& source) {
  std::vector<Analysis>& analyses = plan_.analyses;
  const std::size_t before = analyses.size();
  for (const ProtocolChoice& protocol : plan_.protocols) {
    Analysis analysis = MakeAnalysis(protocol.name, name, set);
    const auto is_same = [&](const Analysis& earlier) {
      return earlier.name == analysis.name && earlier.parameters == analysis.parameters;
    };
    if (std::any_of(analyses.begin(), analyses.end(), is_same)) continue;
    analyses.push_back(std::move(analysis));
  }
  if (analyses.size() > before) return;
  Say(source, "each analysis once",
      "analysis " + name + " is there twice with the same parameters");
}

std::vector<SweepReader::Source> SweepReader::Elements(const Source& source) {
  if (source.node->kind != Kind::kList) return {source};
  if (source.node->items.empty())
    Say(source, "at least one value", source.path + " is an empty list");
  std::vector<Source> elements;
  for (std::size_t i = 0; i < source.node->items.size(); ++i) {
    elements.push_back({source.node->items[i].get(), source.path + "[" + std::to_string(i) + "]"});
  }
  return elements;
}

std::vector<SweepReader::Source> SweepReader::ValuesIn(const Field& field, const Source& source) {
  return IsOneValue(field, *source.node) ? std::vector<Source>{source} : Elements(source);
}

SweepReader::FieldRows SweepReader::RowsOf(const YamlMember& member, const std::string& path) {
  FieldRows rows;
  std::string complaint;
  for (const Field& field : catalog::Fields()) {
    if (field.name != member.key->text) continue;
    if (catalog::IsAnalysisField(field)) {
      complaint = std::string(field.name) + " is of an analysis, and no job has it; " +
                  OncePerValue(field, *member.value);
    } else {
      rows.push_back(&field);
    }
  }
  if (rows.empty() && complaint.empty()) complaint = UnknownField(*member.key);
  if (rows.empty()) Say({member.key.get(), path}, "", complaint);
  return rows;
}

std::string SweepReader::UnknownField(const YamlNode& key) const {
  const std::string start = "unknown field " + InWords(key) + "; ";
  if (key.text == "protocol" || key.text == "pe" || key.text == "task" || key.text == "seed") {
    return start + key.text + " is given at the top of the document";
  }
  std::vector<std::string_view> names = JobFieldNames();
  for (const Field& field : catalog::Fields()) {
    if (catalog::IsAnalysisField(field)) names.push_back(field.name);
  }
  std::string near(catalog::DidYouMean(key.text, names));
  for (const std::string_view name : names) {  // "lr" suggests "train.lr"
    if (near.empty() && name.substr(name.find('.') + 1) == key.text) near = name;
  }
  return start + (near.empty() ? "" : "did you mean " + near + "? ") +
         "a field is named in full, such as train.lr; `pelab catalog field` lists them";
}

std::optional<Setting> SweepReader::ReadSetting(const FieldRows& rows, const Source& source) {
  for (const Field* row : rows) {
    if (auto value = ReadYamlValue(*row, *source.node)) {
      return Setting{std::string(row->name),
                     std::move(*value),
                     {source.node->line, source.node->column, source.path}};
    }
  }
  unread_fields_.emplace(rows[0]->name);
  Say(source, catalog::Allowed(*rows[0]), MustBe(*rows[0], *source.node));
  return std::nullopt;
}

void SweepReader::Say(const Source& source, std::string allowed, std::string message) {
  const YamlNode& node = *source.node;
  std::string value = node.kind == Kind::kScalar ? Shorten(node.text, 200) : InWords(node);
  violations_.Add(Place{node.line, node.column, source.path}, std::move(value), std::move(allowed),
                  std::move(message));
}

}  // namespace pelab::experiment
