#include "core/claims/sheet_reader.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>

#include "core/base/strings.h"
#include "core/base/utf8.h"
#include "core/catalog/catalog.h"
#include "core/claims/metric.h"
#include "core/claims/twins.h"
#include "core/experiment/sweep.h"
#include "core/experiment/sweep_name.h"
#include "core/experiment/yaml_json.h"
#include "core/experiment/yaml_tree.h"

namespace pelab::claims {
namespace {

using experiment::InWords;
using experiment::MemberOf;
using experiment::Place;
using experiment::YamlMember;
using experiment::YamlNode;
using experiment::YamlPointer;
using NodeKind = YamlNode::Kind;

constexpr std::size_t kMaxText = 1000;  // bytes of what a claim says, and of its source

// A node and the path that names it in messages.
struct Source {
  const YamlNode* node = nullptr;
  std::string path;
  Source Member(const YamlMember& member) const {
    return {member.value.get(), path.empty() ? member.key->text : path + "." + member.key->text};
  }
  Place place() const { return {node->line, node->column, path}; }
};

// A key of a map, and what reads its value.
struct Key {
  std::string_view name;
  bool required = false;
  std::function<void(const Source&)> read;
};

// A value as the language of conditions takes it.
std::string Quoted(const std::string& value) {
  const auto plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '-';
  };
  if (!value.empty() && std::all_of(value.begin(), value.end(), plain)) return value;
  std::string quoted = "'";
  for (const char c : value) quoted += c == '\'' ? "''" : std::string(1, c);
  return quoted + "'";
}

// The largest limit of a claim about fractions. It is above 1 because a value on a limit counts for
// neither side: with a high of 1.01, a perfect accuracy counts.
constexpr double kMostLimit = 1.1;

class SheetReader {
 public:
  explicit SheetReader(experiment::Violations* violations) : violations_(*violations) {}

  Sheet Read(const YamlNode& root) {
    const auto has = [&](std::string_view key) { return MemberOf(root, key) != nullptr; };
    if (has("pe") && has("task") && !has("sweep") && !has("claims")) {
      Say({&root, ""}, "a claim sheet",
          "this is a sweep and no claim sheet: pelab run trains it; a sheet has the keys sweep and "
          "claims");
      return std::move(sheet_);
    }
    ReadMap({&root, ""}, "a claim sheet",
            {{"name", true, [&](const Source& s) { ReadName(s); }},
             {"sweep", true, [&](const Source& s) { ReadSweep(s); }},
             {"false_discovery_rate", false,
              [&](const Source& s) {
                ReadNumber(s, 0, 0.5, "a number above 0, at most 0.5",
                           &sheet_.false_discovery_rate);
              }},
             {"max_seeds", false, [&](const Source& s) { ReadMaxSeeds(s); }},
             {"first_seed", false, [&](const Source& s) { ReadFirstSeed(s); }},
             {"claims", true, [&](const Source& s) { ReadClaims(s); }}});
    return std::move(sheet_);
  }

 private:
  void Say(const Source& source, std::string allowed, const std::string& message) {
    violations_.Add(source.place(), InWords(*source.node), std::move(allowed),
                    Shorten(Escape(message), kMaxMessageBytes));
  }

  void ReadMap(const Source& source, const std::string& what, const std::vector<Key>& keys) {
    if (source.node->kind != NodeKind::kMap) {
      Say(source, "a map", Concat(what, " must be a map, not ", InWords(*source.node)));
      return;
    }
    std::vector<std::string_view> known;
    known.reserve(keys.size());
    for (const Key& key : keys) known.push_back(key.name);
    for (const YamlMember& member : source.node->members) {
      const std::string& name = member.key->text;
      const auto key =
          std::find_if(keys.begin(), keys.end(), [&](const Key& one) { return one.name == name; });
      if (key == keys.end()) {
        Say({member.key.get(), source.Member(member).path}, experiment::SortedList(known),
            experiment::UnknownName(Concat("key of ", what), InWords(*member.key), name, known));
      } else {
        key->read(source.Member(member));
      }
    }
    for (const Key& key : keys) {
      if (key.required && MemberOf(*source.node, key.name) == nullptr) {
        Say(source, std::string(key.name), Concat(what, " needs the key ", key.name));
      }
    }
  }

  void ReadText(const Source& source, std::string* text) {
    if (source.node->kind != NodeKind::kScalar || source.node->text.size() > kMaxText) {
      Say(source, Concat("a text of at most ", kMaxText, " bytes"),
          Concat(source.path, " must be a text of at most ", kMaxText, " bytes, not ",
                 InWords(*source.node)));
    } else {
      *text = source.node->text;
    }
  }
  // `low` itself is not allowed.
  void ReadNumber(const Source& source, double low, double high, const std::string& rule,
                  double* number) {
    const auto read = ReadReal(*source.node);
    if (!read || !(*read > low && *read <= high)) {
      Say(source, rule, Concat(source.path, " must be ", rule, ", not ", InWords(*source.node)));
    } else {
      *number = *read;
    }
  }
  void ReadAnyNumber(const Source& source, double* number) {
    constexpr double kMost = 1e300;
    ReadNumber(source, -kMost, kMost, "a number", number);
  }

  void ReadWeight(const Source& source, double* weight) {
    ReadAnyNumber(source, weight);
    if (*weight == 0) Say(source, "a number other than 0", "a cell of weight 0 has no effect");
  }

  std::string ReadNameOf(const Source& source, const std::string& what) {
    const std::string& text = source.node->text;
    const bool is_name = source.node->kind == NodeKind::kScalar && experiment::IsSweepName(text) &&
                         !experiment::IsNumberName(text);
    if (is_name) return text;
    const std::string rule = Concat(experiment::kSweepNameRule, ", and not digits alone");
    Say(source, rule, Concat(what, " must be ", rule, ", not ", InWords(*source.node)));
    return "";
  }
  void ReadName(const Source& source) { sheet_.name = ReadNameOf(source, "name"); }

  void ReadSweep(const Source& source) {
    sheet_.sweep_place = source.place();
    if (source.node->kind == NodeKind::kScalar && !source.node->text.empty()) {
      sheet_.sweep_file = source.node->text;
    } else if (source.node->kind == NodeKind::kMap) {
      sheet_.sweep_document = experiment::JsonOf(*source.node).dump();
    } else {
      Say(source, "a file or a map",
          Concat("sweep must be the name of a sweep file, or a sweep itself, not ",
                 InWords(*source.node)));
    }
  }

  void ReadMaxSeeds(const Source& source) {
    const auto read = experiment::ReadInteger(*source.node);
    if (!read || *read < 1 || *read > kMaxSeeds) {
      Say(source, Concat("an integer from 1 to ", kMaxSeeds),
          Concat("max_seeds must be an integer from 1 to ", kMaxSeeds, ", not ",
                 InWords(*source.node)));
    } else {
      sheet_.max_seeds = *read;
    }
  }

  void ReadFirstSeed(const Source& source) {
    const auto read = experiment::ReadInteger(*source.node);
    if (!read || *read < 0 || *read >= kFirstPilotSeed) {
      const std::string rule = Concat("an integer from 0 to ", kFirstPilotSeed - 1);
      Say(source, rule, Concat("first_seed must be ", rule, ", not ", InWords(*source.node)));
    } else {
      sheet_.first_seed = *read;
    }
  }

  // The items of a list, each with its path; a violation for anything else.
  std::vector<Source> Items(const Source& source, const std::string& what, std::size_t least,
                            std::size_t most) {
    std::vector<Source> items;
    const std::size_t count = source.node->items.size();
    if (source.node->kind != NodeKind::kList || count < least || count > most) {
      const std::string rule = Concat("a list of ", least, " to ", most, " ", what);
      const std::string found = source.node->kind == NodeKind::kList
                                    ? Concat("; it has ", count)
                                    : Concat(", not ", InWords(*source.node));
      Say(source, rule, Concat(source.path, " must be ", rule, found));
      return items;
    }
    for (std::size_t i = 0; i < count; ++i) {
      items.push_back({source.node->items[i].get(), Concat(source.path, "[", i, "]")});
    }
    return items;
  }

  void ReadClaims(const Source& source) {
    std::set<std::string> ids;
    for (const Source& item : Items(source, "claims", 1, kMaxClaims)) {
      Claim claim;
      ReadClaim(item, &claim);
      if (!claim.id.empty() && !ids.insert(claim.id).second) {
        Say(item, "each id once", Concat("the id ", claim.id, " is there twice"));
      }
      sheet_.claims.push_back(std::move(claim));
    }
    // A claim that could not be read whole would look like another one.
    if (violations_.empty()) RefuseTwins(sheet_.claims, &violations_);
  }

  void ReadClaim(const Source& source, Claim* claim) {
    claim->place = source.place();
    std::vector<Key> keys = {
        {"id", true, [&](const Source& s) { claim->id = ReadNameOf(s, "id"); }},
        {"says", false, [&](const Source& s) { ReadText(s, &claim->says); }},
        {"source", false, [&](const Source& s) { ReadText(s, &claim->source); }},
        {"where", false,
         [&](const Source& s) {
           claim->where = ReadCondition(s);
           claim->where_place = s.place();
         }},
        {"each", false, [&](const Source& s) { ReadEach(s, claim); }},
        {"eligible", false, [&](const Source& s) { ReadEligible(s, claim); }}};
    int kinds = 0;
    for (std::size_t kind = 0; kind < KindNames().size(); ++kind) {
      keys.push_back({KindNames()[kind], false, [this, claim, kind, &kinds](const Source& s) {
                        ++kinds;
                        claim->kind = static_cast<Kind>(kind);
                        ReadKind(s, claim);
                      }});
    }
    ReadMap(source, "a claim", keys);
    if (source.node->kind == NodeKind::kMap && kinds != 1) {
      const std::string rule = Concat("one of ", Join(KindNames(), ", "));
      Say(source, rule,
          Concat("a claim needs exactly ", rule, "; this one has ",
                 kinds == 0 ? "none" : "several"));
    }
    if (!claim->eligible && IsAboutAblation(claim->metric)) claim->eligible.emplace();
  }

  void ReadKind(const Source& source, Claim* claim) {
    const std::string what = NameOf(claim->kind);
    std::vector<Key> keys = {{"metric", true, [&](const Source& s) { ReadMetric(s, claim); }}};
    std::vector<Term> above, below;
    const auto cell = [&](double weight) {
      return [this, claim, weight](const Source& s) { ReadCell(s, weight, claim); };
    };
    switch (claim->kind) {
      case Kind::kAbove:
        keys.push_back({"a", false, [&](const Source& s) { ReadCells(s, &above); }});
        keys.push_back({"b", false, [&](const Source& s) { ReadCells(s, &below); }});
        keys.push_back({"chain", false, [&](const Source& s) { ReadChain(s, claim); }});
        keys.push_back({"by", false, [&](const Source& s) { ReadAnyNumber(s, &claim->low); }});
        break;
      case Kind::kBetween:
        keys.push_back({"cell", true, cell(1)});
        keys.push_back({"low", true, [&](const Source& s) { ReadAnyNumber(s, &claim->low); }});
        keys.push_back({"high", true, [&](const Source& s) { ReadAnyNumber(s, &claim->high); }});
        break;
      case Kind::kNear:
        keys.push_back({"a", true, cell(1)});
        keys.push_back({"b", true, cell(-1)});
        keys.push_back({"within", true, [&](const Source& s) {
                          ReadNumber(s, 0, 1e300, "a number above 0", &claim->high);
                          claim->low = -claim->high;
                        }});
        break;
      case Kind::kMost:
        keys.push_back({"cell", true, cell(1)});
        keys.push_back({"layers", false, [&](const Source& s) { ReadLayers(s, claim); }});
        break;
      case Kind::kContrast:
        keys.push_back({"of", true, [&](const Source& s) { ReadTerms(s, claim); }});
        keys.push_back({"by", false, [&](const Source& s) { ReadAnyNumber(s, &claim->low); }});
        break;
    }
    ReadMap(source, what, keys);
    AddPairs(source, above, below, claim);
    CheckKind(source, *claim);
  }

  // Each cell of `above` with each of `below`.
  void AddPairs(const Source& source, const std::vector<Term>& above,
                const std::vector<Term>& below, Claim* claim) {
    if (above.size() * below.size() > kMaxTerms) {
      Say(source, Concat("at most ", kMaxTerms, " pairs"),
          Concat(above.size(), " cells a and ", below.size(), " cells b make more than ", kMaxTerms,
                 " pairs"));
      return;
    }
    const std::size_t first = claim->cells.size();
    claim->cells.insert(claim->cells.end(), above.begin(), above.end());
    claim->cells.insert(claim->cells.end(), below.begin(), below.end());
    for (std::size_t i = 0; i < above.size(); ++i) {
      for (std::size_t j = 0; j < below.size(); ++j) {
        claim->pairs.emplace_back(first + i, first + above.size() + j);
      }
    }
  }

  // Reports errors that involve several keys of a kind.
  void CheckKind(const Source& source, const Claim& claim) {
    if (source.node->kind != NodeKind::kMap) return;
    const auto has = [&](std::string_view key) { return MemberOf(*source.node, key) != nullptr; };
    if (claim.kind == Kind::kAbove &&
        (has("chain") ? has("a") || has("b") : !has("a") || !has("b"))) {
      Say(source, "a and b, or chain",
          "above needs either a and b, or a chain of cells from the highest on");
    }
    if (claim.kind == Kind::kBetween) CheckOrder(source);
    if (claim.kind != Kind::kMost && claim.kind != Kind::kContrast) {
      CheckLimits(source, claim.metric);
    }
  }

  // The value of a key of a map, or the map itself if it lacks the key.
  static Source ValueOf(const Source& source, std::string_view key) {
    const YamlNode* value = MemberOf(*source.node, key);
    return value == nullptr ? source : Source{value, Concat(source.path, ".", key)};
  }

  void CheckOrder(const Source& between) {
    const Source low = ValueOf(between, "low"), high = ValueOf(between, "high");
    const auto from = ReadReal(*low.node), to = ReadReal(*high.node);
    if (!from || !to || *from < *to) return;
    Say(low, "low below high",
        Concat(low.path, " must be below high (", InWords(*high.node), "), not ",
               InWords(*low.node)));
  }

  // A limit of 5 was meant as 5 points.
  void CheckLimits(const Source& source, const std::string& metric) {
    if (!IsFraction(metric)) return;
    for (const std::string_view key : {"above", "by", "within", "low", "high"}) {
      const Source limit = ValueOf(source, key);
      const auto read = ReadReal(*limit.node);
      const bool is_reported = !read || (key == "within" && *read <= 0);
      if (is_reported || std::abs(*read) <= kMostLimit) continue;
      const std::string points = catalog::NumberToText(*read);
      Say(limit, "-1 to 1",
          Concat(limit.path, " is ", points, ", but ", metric, " is a fraction: write ",
                 catalog::NumberToText(*read / 100), " for ", points, " points"));
    }
  }

  void ReadMetric(const Source& source, Claim* claim) {
    ReadText(source, &claim->metric);
    const absl::Status status = CheckMetric(claim->kind, claim->metric);
    if (!status.ok()) Say(source, "", std::string(status.message()));
  }

  // A name alone is most likely that of an encoding.
  std::string ReadWrittenCondition(const Source& source) {
    const std::string& text = source.node->text;
    if (text.find_first_of("=<>~! (") == std::string::npos) {
      Say(source, "a condition",
          Concat(source.path, " must be a condition such as pe=", text, ", not ",
                 InWords(*source.node)));
    }
    return text;
  }

  // "pe=rope and train.lr=0.001" as written, or made of {pe: rope, train.lr: 0.001}. In the map,
  // a key without a dot is a field of the encoding.
  std::string ReadCondition(const Source& source) {
    if (source.node->kind == NodeKind::kScalar && !source.node->text.empty()) {
      return ReadWrittenCondition(source);
    }
    if (source.node->kind != NodeKind::kMap || source.node->members.empty()) {
      Say(source, "a condition",
          Concat(source.path, " must be a condition such as pe=rope, or a map such as {pe: rope}, ",
                 "not ", InWords(*source.node)));
      return "";
    }
    std::vector<std::string> parts;
    for (const YamlMember& member : source.node->members) {
      if (member.value->kind != NodeKind::kScalar) {
        Say(source.Member(member), "a value",
            Concat("a cell has one value for each field, not ", InWords(*member.value)));
        continue;
      }
      const std::string& key = member.key->text;
      const bool whole =
          key == "pe" || key == "task" || key == "protocol" || key.find('.') != std::string::npos;
      parts.push_back(Concat(whole ? "" : "pe.", key, "=", Quoted(member.value->text)));
    }
    return Join(parts, " and ");
  }
  void ReadCell(const Source& source, double weight, Claim* claim) {
    claim->cells.push_back({ReadCondition(source), weight, source.place()});
  }

  // A cell, or a list of cells.
  void ReadCells(const Source& source, std::vector<Term>* cells) {
    const bool is_list = source.node->kind == NodeKind::kList;
    for (const Source& item :
         is_list ? Items(source, "cells", 1, kMaxTerms) : std::vector<Source>{source}) {
      cells->push_back({ReadCondition(item), 1, item.place()});
    }
  }

  void ReadChain(const Source& source, Claim* claim) {
    for (const Source& item : Items(source, "cells", 2, kMaxTerms)) {
      if (!claim->cells.empty()) {
        claim->pairs.emplace_back(claim->cells.size() - 1, claim->cells.size());
      }
      ReadCell(item, 1, claim);
    }
  }
  void ReadTerms(const Source& source, Claim* claim) {
    for (const Source& item : Items(source, "weighted cells", 2, kMaxTerms)) {
      Term term{.place = item.place()};
      ReadMap(item, "a weighted cell",
              {{"cell", true, [&](const Source& s) { term.condition = ReadCondition(s); }},
               {"weight", true, [&](const Source& s) { ReadWeight(s, &term.weight); }}});
      claim->cells.push_back(std::move(term));
    }
  }

  void ReadLayers(const Source& source, Claim* claim) {
    const std::string& word = source.node->text;
    if (source.node->kind == NodeKind::kScalar && (word == "any" || word == "shallow")) {
      claim->layers.which = word == "any" ? Layers::Which::kAny : Layers::Which::kShallow;
      return;
    }
    claim->layers.which = Layers::Which::kListed;
    for (const Source& item : Items(source, "layers (or any, or shallow)", 1, kMaxTerms)) {
      const auto layer = experiment::ReadInteger(*item.node);
      if (!layer || *layer < 0 || *layer >= 1000) {
        Say(item, "an integer from 0",
            Concat("a layer must be an integer from 0, not ", InWords(*item.node)));
      } else {
        claim->layers.listed.push_back(*layer);
      }
    }
  }

  void ReadEach(const Source& source, Claim* claim) {
    claim->each_place = source.place();
    if (source.node->kind == NodeKind::kScalar) {
      claim->each.push_back(source.node->text);
      return;
    }
    for (const Source& item : Items(source, "fields", 1, 8)) {
      std::string field;
      ReadText(item, &field);
      if (std::find(claim->each.begin(), claim->each.end(), field) != claim->each.end()) {
        Say(item, "each field once", Concat("the field ", Shorten(field, 100), " is there twice"));
      }
      claim->each.push_back(std::move(field));
    }
  }

  void ReadEligible(const Source& source, Claim* claim) {
    Eligibility& eligible = claim->eligible.emplace();
    ReadMap(source, "eligible",
            {{"metric", false,
              [&](const Source& s) {
                ReadText(s, &eligible.metric);
                const absl::Status status = CheckMetric(Kind::kAbove, eligible.metric);
                if (!status.ok()) Say(s, "", std::string(status.message()));
              }},
             {"above", false,
              [&](const Source& s) {
                if (s.node->kind == NodeKind::kScalar && s.node->text == "shortcut") return;
                double above = 0;
                ReadNumber(s, -1e300, 1e300, "shortcut or a number", &above);
                eligible.above = above;
              }},
             {"by", false, [&](const Source& s) { ReadAnyNumber(s, &eligible.by); }}});
    CheckLimits(source, eligible.metric);
  }

  Sheet sheet_;
  experiment::Violations& violations_;
};

}  // namespace

SheetResult ReadSheet(std::string_view document) {
  experiment::Violations violations;
  experiment::YamlResult yaml = experiment::ParseYaml(document, "document");
  for (experiment::Violation& violation : yaml.violations) violations.Add(std::move(violation));
  Sheet sheet;
  if (yaml.root != nullptr) sheet = SheetReader(&violations).Read(*yaml.root);
  SheetResult result;
  if (violations.empty()) result.sheet = std::move(sheet);
  result.violations = violations.TakeSorted();
  return result;
}

}  // namespace pelab::claims
