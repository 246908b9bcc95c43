#include "client/claims/sheet_difference.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "core/base/strings.h"
#include "core/claims/metric.h"
#include "core/render/text.h"

namespace pelab::client {
namespace {

using claims::Claim;

std::string CellsText(const Claim& claim) {
  std::vector<std::string> cells;
  for (const claims::Term& term : claim.cells) {
    cells.push_back(claim.kind == claims::Kind::kContrast
                        ? Concat(render::Shortest(term.weight), " (", term.condition, ")")
                        : term.condition);
  }
  return Join(cells, "; ");
}

// "1>2, 1>3": which cell is to be above which.
std::string PairsText(const Claim& claim) {
  std::vector<std::string> pairs;
  for (const auto& [a, b] : claim.pairs) pairs.push_back(Concat(a + 1, ">", b + 1));
  return Join(pairs, ", ");
}

std::string LayersText(const claims::Layers& layers) {
  switch (layers.which) {
    case claims::Layers::Which::kAny:
      return "any";
    case claims::Layers::Which::kShallow:
      return "shallow";
    case claims::Layers::Which::kListed:
      return Join(layers.listed, ", ");
  }
  return "";
}

std::string EligibleText(const std::optional<claims::Eligibility>& eligible) {
  if (!eligible) return "every seed";
  return Concat(eligible->metric, " above ",
                eligible->above ? render::Shortest(*eligible->above) : "shortcut", " by ",
                render::Shortest(eligible->by));
}

// A limit by the name that it has in the sheet; empty if the claim's kind has none of that name.
std::string LimitText(const Claim& claim, std::string_view name) {
  switch (claim.kind) {
    case claims::Kind::kAbove:
    case claims::Kind::kContrast:
      return name == "by" ? render::Shortest(claim.low) : "";
    case claims::Kind::kNear:
      return name == "within" ? render::Shortest(claim.high) : "";
    case claims::Kind::kBetween:
      return name == "low"    ? render::Shortest(claim.low)
             : name == "high" ? render::Shortest(claim.high)
                              : "";
    case claims::Kind::kMost:
      return "";
  }
  return "";
}

// The parts of a claim, in the order in which they are shown.
std::vector<std::pair<std::string, std::string>> PartsOf(const Claim& claim) {
  return {{"kind", claims::NameOf(claim.kind)},
          {"metric", claim.metric},
          {"cells", CellsText(claim)},
          {"pairs", PairsText(claim)},
          {"by", LimitText(claim, "by")},
          {"within", LimitText(claim, "within")},
          {"low", LimitText(claim, "low")},
          {"high", LimitText(claim, "high")},
          {"layers", LayersText(claim.layers)},
          {"where", claim.where},
          {"each", Join(claim.each, ", ")},
          {"eligible", EligibleText(claim.eligible)},
          {"says", claim.says},
          {"source", claim.source}};
}

const Claim* Find(const claims::Sheet& sheet, const std::string& id) {
  const auto found = std::find_if(sheet.claims.begin(), sheet.claims.end(),
                                  [&](const Claim& claim) { return claim.id == id; });
  return found == sheet.claims.end() ? nullptr : &*found;
}

}  // namespace

std::vector<SheetDifference> DifferencesOf(const claims::Sheet& a, const std::string& a_sweep,
                                           const claims::Sheet& b, const std::string& b_sweep) {
  std::vector<SheetDifference> differences;
  const auto compare = [&](const std::string& claim, const std::string& what,
                           const std::string& before, const std::string& after) {
    if (before != after) differences.push_back({claim, what, before, after});
  };
  compare("", "name", a.name, b.name);
  compare("", "false_discovery_rate", render::Shortest(a.false_discovery_rate),
          render::Shortest(b.false_discovery_rate));
  compare("", "max_seeds", Concat(a.max_seeds), Concat(b.max_seeds));
  compare("", "first_seed", Concat(a.first_seed), Concat(b.first_seed));
  compare("", "sweep file", a.sweep_file, b.sweep_file);
  if (a_sweep != b_sweep) differences.push_back({"", "sweep", "its document", "another document"});
  for (const Claim& before : a.claims) {
    const Claim* after = Find(b, before.id);
    if (after == nullptr) {
      differences.push_back({before.id, "removed", before.says, ""});
      continue;
    }
    const auto old_parts = PartsOf(before), new_parts = PartsOf(*after);
    for (std::size_t i = 0; i < old_parts.size(); ++i) {
      compare(before.id, old_parts[i].first, old_parts[i].second, new_parts[i].second);
    }
  }
  for (const Claim& after : b.claims) {
    if (Find(a, after.id) == nullptr) differences.push_back({after.id, "added", "", after.says});
  }
  return differences;
}

std::string DifferencesText(const std::vector<SheetDifference>& differences) {
  std::string text;
  for (const SheetDifference& one : differences) {
    const std::string of = one.claim.empty() ? "sheet" : one.claim;
    const std::string before = render::Escape(one.before), after = render::Escape(one.after);
    text += Concat(of, ": ", one.what);
    if (one.what == "added" || one.what == "removed") {
      const std::string& says = one.what == "added" ? after : before;
      text += says.empty() ? "\n" : Concat(" (", says, ")\n");
    } else {
      text += Concat(": ", before.empty() ? "-" : before, " → ", after.empty() ? "-" : after, "\n");
    }
  }
  return text;
}

render::Json DifferencesJson(const std::vector<SheetDifference>& differences) {
  render::Json all = render::Json::array();
  for (const SheetDifference& one : differences) {
    all.push_back({{"claim", one.claim.empty() ? render::Json(nullptr) : render::Json(one.claim)},
                   {"what", one.what},
                   {"before", one.before},
                   {"after", one.after}});
  }
  return all;
}

}  // namespace pelab::client
