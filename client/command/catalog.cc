#include "core/catalog/catalog.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "client/command/commands.h"
#include "client/terminal/put.h"
#include "client/terminal/table.h"
#include "core/base/strings.h"
#include "core/catalog/protocol_values.h"
#include "core/claims/entries.h"
#include "core/render/text.h"

namespace pelab::client {
namespace {

using render::Json;

struct CatalogOptions {
  std::string kind;
  std::string name;
};

struct Kind {
  const char* name;
  const std::vector<catalog::Entry>& (*entries)();
};
constexpr Kind kKinds[] = {{"pe", catalog::PesAndOwn},       {"task", catalog::TasksAndOwn},
                           {"protocol", catalog::Protocols}, {"analysis", catalog::Analyses},
                           {"claim", claims::KindEntries},   {"metric", claims::MetricEntries}};
constexpr std::size_t kSweepKinds = 4;  // the kinds, from the first on, that a sweep names

// "10000; 500 (published)": the defaults of a field, each with its conditions.
std::string DefaultText(const catalog::Field& field) {
  if (field.derived_default != nullptr) return "(depends on other fields)";
  std::vector<std::string> parts;
  for (const catalog::DefaultRule& rule : field.defaults) {
    std::vector<std::string_view> when;
    for (const std::string_view condition : {rule.protocol, rule.pe, rule.task}) {
      if (!condition.empty()) when.push_back(condition);
    }
    const std::string value = catalog::ToText(rule.value);
    parts.push_back(when.empty() ? value : Concat(value, " (", Join(when, ", "), ")"));
  }
  return Join(parts, "; ");
}

Json FieldJson(const catalog::Field& field) {
  return {{"name", field.name},
          {"owner", field.owner.empty() ? Json(nullptr) : Json(field.owner)},
          {"type", catalog::FieldTypeName(field.type)},
          {"allowed", catalog::Allowed(field)},
          {"default", DefaultText(field)},
          {"switch", field.is_switch},
          {"unit", field.unit},
          {"help", field.help}};
}

Json EntryJson(const char* kind, const catalog::Entry& entry) {
  return {{"kind", kind},
          {"name", entry.name},
          {"version", entry.version},
          {"help", entry.help},
          {"source", entry.source}};
}

// A narrower terminal would make five columns unreadable.
constexpr int kLeastTableWidth = 120;

// Wraps `text` after `before`, with its other lines indented to the end of `before`:
//   help: a long text
//         goes on here
std::string Hanging(const std::string& before, const std::string& text, int width) {
  const int indent = render::DisplayWidth(before);
  std::string wrapped = render::Wrap(text, std::max(20, width - indent));
  const std::string margin(static_cast<std::size_t>(indent), ' ');
  for (std::size_t at = 0; (at = wrapped.find('\n', at)) != std::string::npos;) {
    wrapped.insert(++at, margin);
  }
  return Concat(before, wrapped, "\n");
}

std::string FieldDetails(const catalog::Field& field, int width) {
  std::string text = Concat(field.name, field.owner.empty() ? "" : " of ", field.owner, "\n") +
                     Hanging("  ", std::string(field.help), width) +
                     Hanging("  allowed:  ", catalog::Allowed(field), width) +
                     Hanging("  default:  ", DefaultText(field), width);
  if (!field.unit.empty()) text += Concat("  unit:     ", field.unit, "\n");
  if (field.applies_when) {
    text += Concat("  only where ", field.applies_when->ToText(), "\n");
  }
  return text;
}

std::string FieldTable(const std::vector<const catalog::Field*>& fields,
                       const render::Style& style) {
  if (style.width < kLeastTableWidth) {
    std::string text;
    for (const catalog::Field* field : fields) text += FieldDetails(*field, style.width);
    return text;
  }
  render::Table table({{"field"},
                       {"of"},
                       {"default", render::Column::Align::kLeft, true},
                       {"allowed", render::Column::Align::kLeft, true},
                       {"what it is", render::Column::Align::kLeft, true}},
                      render::Table::kAllLines);
  for (const catalog::Field* f : fields) {
    table.AddRow({std::string(f->name), std::string(f->owner), DefaultText(*f),
                  catalog::Allowed(*f), std::string(f->help)});
  }
  return table.Render(style);
}

std::string AllDetails(const catalog::Field& field, int width) {
  std::string text =
      FieldDetails(field, width) + Concat("  type:     ", catalog::FieldTypeName(field.type), "\n");
  if (field.is_switch) {
    text += Hanging(
        "  ", "a switch: decides whether a job carries its protocol's name or \"custom\"", width);
  }
  return text;
}

absl::Status Unknown(const std::string& what, const std::string& name,
                     const std::vector<std::string_view>& known) {
  const std::string_view near = catalog::DidYouMean(name, known);
  return absl::InvalidArgumentError(Concat("unknown ", what, " \"", name, "\"",
                                           near.empty() ? "" : "; did you mean ", near,
                                           "; known: ", Join(known, ", ")));
}

absl::StatusOr<int> ShowFields(const Context& context, const std::string& name) {
  std::vector<const catalog::Field*> fields;
  std::vector<std::string_view> names;
  for (const catalog::Field& field : catalog::Fields()) {
    if (std::find(names.begin(), names.end(), field.name) == names.end())
      names.push_back(field.name);
    if (name.empty() || field.name == name) fields.push_back(&field);
  }
  if (fields.empty()) return Unknown("field", name, names);
  const auto json = [&] {
    Json rows = Json::array();
    for (const catalog::Field* field : fields) rows.push_back(FieldJson(*field));
    return Json{{"fields", rows}};
  };
  const auto text = [&] {
    if (name.empty()) return FieldTable(fields, context.style);
    std::string text;
    for (const catalog::Field* field : fields) text += AllDetails(*field, context.style.width);
    return text;
  };
  return Put(context, {.json = json, .text = text, .rows = "fields"});
}

// "model.mask", or "pe.slopes of alibi"; field names of analyses already include their owner.
std::string OwnedName(const catalog::ProtocolValue& row) {
  const bool of_pe = catalog::FindPe(row.owner) != nullptr;
  return of_pe ? Concat(row.field, " of ", row.owner) : std::string(row.field);
}

Json ProtocolValuesJson(std::string_view protocol) {
  Json rows = Json::array();
  for (const catalog::ProtocolValue& row : catalog::ProtocolValues(protocol)) {
    rows.push_back({{"field", row.field},
                    {"owner", row.owner.empty() ? Json(nullptr) : Json(row.owner)},
                    {"value", row.value},
                    {"reason", row.reason}});
  }
  return rows;
}

std::string ProtocolValuesText(std::string_view protocol, const render::Style& style) {
  render::Table table({{"field"},
                       {"value", render::Column::Align::kLeft, true},
                       {"reason", render::Column::Align::kLeft, true}},
                      render::Table::kAllLines);
  for (const catalog::ProtocolValue& row : catalog::ProtocolValues(protocol)) {
    table.AddRow({OwnedName(row), row.value, std::string(row.reason)});
  }
  return Concat("\n", table.Render(style),
                "Every other field has one default under all protocols: pelab catalog field\n");
}

// True for the entry's own fields, for the fields of every task, and for fields whose default this
// PE or task decides.
bool Concerns(const catalog::Field& field, std::string_view kind, std::string_view name) {
  const bool of_task = field.name.starts_with("task.");
  if (!field.owner.empty())
    return field.owner == name && (name != "own" || of_task == (kind == "task"));
  if (kind == "task" && of_task) return catalog::IsOf(field, "", name);
  return std::any_of(
      field.defaults.begin(), field.defaults.end(), [&](const catalog::DefaultRule& rule) {
        return (kind == "task" && rule.task == name) || (kind == "pe" && rule.pe == name);
      });
}

std::string HowToName(const std::string& kind, const std::string& item) {
  return Concat("\n  in a sweep: ", kind, ": ", item,
                "\n  The file decides most of the fields below; they are there for conditions.\n");
}

// Shows an entry with its own fields and the common fields whose defaults it decides. A protocol
// also shows the values that it sets.
int ShowEntry(const Context& context, const Kind& kind, const catalog::Entry& entry) {
  std::vector<const catalog::Field*> fields;
  for (const catalog::Field& field : catalog::Fields()) {
    if (Concerns(field, kind.name, entry.name)) fields.push_back(&field);
  }
  Json json = EntryJson(kind.name, entry);
  json["fields"] = Json::array();
  for (const catalog::Field* field : fields) json["fields"].push_back(FieldJson(*field));
  const bool is_protocol = catalog::FindProtocol(entry.name) == &entry;
  if (is_protocol) json["values"] = ProtocolValuesJson(entry.name);
  const auto text = [&] {
    std::string text = Concat(kind.name, " ", entry.name);
    if (entry.version > 0) text += Concat(", version ", entry.version);
    text += "\n" + Hanging("  ", std::string(entry.help), context.style.width);
    if (!entry.source.empty()) {
      text += Hanging("  source: ", std::string(entry.source), context.style.width);
    }
    const std::string_view of = kind.name;
    if (of == "pe" && entry.name == catalog::OwnPe().name) {
      text += HowToName("pe", "{name: own, file: decay.pt}");
    } else if (of == "task" && entry.name == catalog::OwnTask().name) {
      text += HowToName("task", "{name: own, file: parity.safetensors, test: [test, long]}");
    }
    if (!fields.empty()) text += "\n" + FieldTable(fields, context.style);
    return is_protocol ? text + ProtocolValuesText(entry.name, context.style) : text;
  };
  return Put(context, {.json = [&] { return json; },
                       .text = text,
                       .csv = [&] { return is_protocol ? json["values"] : Json::array({json}); }});
}

int ShowEntries(const Context& context, const std::vector<const Kind*>& kinds) {
  Json rows = Json::array();
  render::Table table({{"kind"},
                       {"name"},
                       {"version", render::Column::Align::kRight},
                       {"what it is", render::Column::Align::kLeft, true}},
                      render::Table::kAllLines);
  for (const Kind* kind : kinds) {
    for (const catalog::Entry& entry : kind->entries()) {
      rows.push_back(EntryJson(kind->name, entry));
      table.AddRow({kind->name, std::string(entry.name),
                    entry.version > 0 ? Concat(entry.version) : "-", std::string(entry.help)});
    }
  }
  return Put(context, {.json =
                           [&] {
                             return Json{{"entries", rows}};
                           },
                       .text = [&] { return table.Render(context.style); },
                       .rows = "entries"});
}

absl::StatusOr<int> Run(const Context& context, const CatalogOptions& options) {
  if (options.kind == "field") return ShowFields(context, options.name);
  std::vector<const Kind*> kinds;
  for (std::size_t i = 0; i < std::size(kKinds); ++i) {
    const bool wanted = options.kind.empty() ? i < kSweepKinds : options.kind == kKinds[i].name;
    if (wanted) kinds.push_back(&kKinds[i]);
  }
  if (kinds.empty()) {
    return Unknown("kind of entry", options.kind,
                   {"pe", "task", "protocol", "analysis", "field", "claim", "metric"});
  }
  if (options.name.empty()) {
    return ShowEntries(context, kinds);
  }
  std::vector<std::string_view> known;
  for (const catalog::Entry& entry : kinds.front()->entries()) {
    known.push_back(entry.name);
    if (entry.name == options.name) {
      return ShowEntry(context, *kinds.front(), entry);
    }
  }
  return Unknown(options.kind, options.name, known);
}

}  // namespace

void AddCatalog(Commands& commands) {
  auto options = std::make_shared<CatalogOptions>();
  CLI::App* app = AddCommand(commands, "catalog",
                             "every PE, task, protocol, analysis and field that a sweep can name, "
                             "and every kind of claim and metric",
                             "  pelab catalog\n"
                             "  pelab catalog pe rope\n"
                             "  pelab catalog metric\n"
                             "  pelab catalog field train.lr --output json");
  app->add_option("KIND", options->kind,
                  "pe, task, protocol, analysis, field, claim or metric [default: the first four]");
  app->add_option("NAME", options->name, "one entry, with its fields [default: all]");
  app->callback([&commands, options] {
    commands.chosen = [&commands, options] { return Run(*commands.context, *options); };
  });
}

}  // namespace pelab::client
