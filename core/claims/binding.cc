#include "core/claims/binding.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/numbers.h"
#include "core/base/sha256.h"
#include "core/base/strings.h"
#include "core/base/utf8.h"
#include "core/catalog/catalog.h"
#include "core/claims/cell_labels.h"
#include "core/claims/metric.h"
#include "core/db/read/spec_filter.h"
#include "core/db/read/where.h"
#include "core/results/metrics.h"

namespace pelab::claims {
namespace {

using experiment::Cell;
using experiment::Place;
using Positions = std::vector<std::size_t>;

constexpr std::size_t kShown = 200;  // bytes of a condition in a message
// Conditions times cells. So many take about two seconds.
constexpr std::size_t kMaxChecks = 200'000;

// The value of a field in a cell; "-" if the cell has no such field.
std::string ValueOf(const Cell& cell, const std::string& field) {
  if (field == "protocol") return cell.protocol_label;
  if (field == "pe_label") return cell.pe_label;
  if (field == "task") return cell.task_label;
  const catalog::Values values = experiment::WithCoordinates(cell.job);
  const auto found = values.find(field);
  return found == values.end() ? "-" : catalog::ToText(found->second);
}

Positions Common(const Positions& a, const Positions& b) {
  Positions both;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both;
}

// "train.lr (0.001, 0.003)": the fields in which the cells differ, with their values. A coordinate
// that tells the cells apart comes alone: the fields that a protocol sets say no more.
std::string Differences(const std::vector<Cell>& cells, const Positions& positions) {
  const auto values_of = [&](const std::string& field) {
    std::set<std::string> values;
    for (const std::size_t at : positions) values.insert(ValueOf(cells[at], field));
    return values;
  };
  for (const char* coordinate : {"protocol", "task", "pe"}) {
    const std::set<std::string> values = values_of(coordinate);
    if (values.size() < positions.size()) continue;
    return Shorten(Concat(coordinate, " (", Join(values, ", "), ")"), kShown);
  }
  std::set<std::string> fields = {"protocol"};
  for (const std::size_t at : positions) {
    for (const auto& [name, value] : experiment::WithCoordinates(cells[at].job)) {
      fields.emplace(name);
    }
  }
  std::vector<std::string> texts;
  for (const std::string& field : fields) {
    const std::set<std::string> values = values_of(field);
    if (values.size() > 1) texts.push_back(Concat(field, " (", Join(values, ", "), ")"));
  }
  return Shorten(Join(texts, ", "), kShown);
}

class Binder {
 public:
  Binder(BoundSheet* bound, experiment::Violations* violations)
      : bound_(*bound), violations_(*violations), filter_(bound->configurations) {}

  void BindAll() {
    for (std::size_t i = 0; i < bound_.sheet.claims.size(); ++i) BindClaim(i);
  }

 private:
  // Messages quote the sheet's conditions.
  void Say(const Place& place, const std::string& value, const std::string& message) {
    violations_.Add(place, value, "", Shorten(Escape(message), kMaxMessageBytes));
  }

  // Null after a violation. A condition is asked once, however many claims name it.
  const Positions* Matching(const std::string& condition, const Place& place) {
    const auto known = matching_.find(condition);
    if (known != matching_.end()) return &known->second;
    checks_ += bound_.configurations.size();
    if (checks_ > kMaxChecks) {
      Say(place, Concat(bound_.configurations.size(), " cells"),
          Concat("the conditions of the sheet, each on ", bound_.configurations.size(),
                 " cells of the sweep, are more than ", kMaxChecks,
                 " checks; use fewer claims or a smaller sweep"));
      return nullptr;
    }
    auto found = filter_.Matching(condition);
    if (found.ok()) return &matching_.emplace(condition, *std::move(found)).first->second;
    Say(place, Shorten(condition, kShown), std::string(found.status().message()));
    return nullptr;
  }

  // For somebody who mistook a value or a name: "; no cell has pe = rop; did you mean rope? there:
  // nope, rope", or the cells that the sweep has.
  std::string HintText(const std::string& condition) {
    const auto wanted = db::ValuesOfWhere(condition);
    if (!wanted.ok()) return CellsText();
    for (const db::WantedValue& one : *wanted) {
      checks_ += bound_.configurations.size();
      if (checks_ > kMaxChecks) break;
      const auto found = filter_.Matching(db::WhereOne(one));
      if (!found.ok() || !found->empty()) continue;
      std::set<std::string> there;
      for (const Cell& cell : bound_.configurations) there.insert(ValueOf(cell, one.field));
      there.erase("-");
      if (there.empty()) continue;
      double number = 0;
      std::vector<std::string_view> known;  // one number is not a slip for another
      if (!absl::SimpleAtod(one.value, &number)) known.assign(there.begin(), there.end());
      const std::string near(catalog::DidYouMean(one.value, known));
      return Concat("; no cell has ", one.field, " ", one.op, " ", Shorten(one.value, kShown), "; ",
                    near.empty() ? "" : Concat("did you mean ", near, "? "),
                    "there: ", Shorten(Join(there, ", "), kShown));
    }
    return CellsText();
  }

  // "; it has rope distance, …". Made once, however many claims are wrong.
  const std::string& CellsText() {
    if (!cells_text_.empty()) return cells_text_;
    const CellLabels labels(bound_.configurations);
    std::set<std::string> all;
    for (std::size_t at = 0; at < bound_.configurations.size(); ++at) all.insert(labels.Of(at));
    return cells_text_ = Concat("; it has ", Shorten(Join(all, ", "), kShown));
  }

  void BindClaim(std::size_t index) {
    const Claim& claim = bound_.sheet.claims[index];
    const Positions* const where = Matching(claim.where, claim.where_place);
    if (where == nullptr) return;
    for (const std::string& field : claim.each) {
      if (db::SpecFilter::IsField(field)) continue;
      return Say(claim.each_place, field,
                 Concat("each: unknown field \"", Shorten(field, kShown),
                        "\"; it takes protocol, pe, task and the fields of a spec"));
    }
    std::map<std::vector<std::string>, Positions> found;
    std::vector<std::vector<std::string>> groups;  // the values of `each`, as they come
    for (const std::size_t at : *where) {
      std::vector<std::string> values;
      for (const std::string& field : claim.each) {
        values.push_back(ValueOf(bound_.configurations[at], field));
      }
      Positions& cells = found[values];
      if (cells.empty()) groups.push_back(std::move(values));
      cells.push_back(at);
    }
    if (groups.empty()) {
      Say(claim.where_place, Shorten(claim.where, kShown),
          Concat("no cell of the sweep meets \"", Shorten(claim.where, kShown), "\"",
                 HintText(claim.where)));
    }
    // One group's error is likely to be that of the others.
    for (const std::vector<std::string>& values : groups) {
      if (!BindGroup(index, values, found.at(values))) return;
    }
  }

  bool Fail(const Place& place, const std::string& value, const std::string& message) {
    Say(place, value, message);
    return false;
  }

  // False after a violation.
  bool BindGroup(std::size_t index, const std::vector<std::string>& each, const Positions& cells) {
    const Claim& claim = bound_.sheet.claims[index];
    const std::string name = Join(each, ", ");
    std::vector<BoundTerm> terms;
    for (const Term& term : claim.cells) {
      const Positions* const found = Matching(term.condition, term.place);
      if (found == nullptr) return false;
      const Positions both = Common(*found, cells);
      const std::string shown = Shorten(term.condition, kShown);
      const std::string within =
          name.empty() ? "" : Concat(" (", Join(claim.each, ", "), ": ", name, ")");
      if (both.empty()) {
        return Fail(term.place, shown,
                    Concat("no cell of the sweep meets \"", shown, "\"",
                           claim.where.empty() ? "" : " where ", Shorten(claim.where, kShown),
                           within, HintText(term.condition)));
      }
      if (both.size() > 1) {
        const std::string differences = Differences(bound_.configurations, both);
        return Fail(term.place, shown,
                    Concat(both.size(), " cells of the sweep meet \"", shown, "\"", within,
                           "; they differ in ", differences,
                           ": name one, here or in where, or claim it for each of them"));
      }
      const auto same = std::find_if(terms.begin(), terms.end(), [&](const BoundTerm& earlier) {
        return earlier.configuration == both.front();
      });
      if (same != terms.end()) {
        return Fail(term.place, shown,
                    Concat("\"", shown, "\" is a cell that the claim has already"));
      }
      terms.push_back({both.front(), term.weight});
    }
    if (!CheckLayers(claim, terms) || !CheckAnalyses(claim, terms)) return false;
    BoundClaim bound{.claim = index,
                     .id = name.empty() ? claim.id : Concat(claim.id, "[", name, "]"),
                     .each = each};
    SetSides(claim, terms, &bound);
    bound_.claims.push_back(std::move(bound));
    return true;
  }

  bool CheckLayers(const Claim& claim, const std::vector<BoundTerm>& terms) {
    for (const BoundTerm& term : terms) {
      for (const std::int64_t layer : claim.layers.listed) {
        if (!HasLayer(claim, bound_.configurations[term.configuration], layer)) return false;
      }
    }
    return true;
  }

  // A layer that no model has would never have the property, and the claim would fail for good.
  bool HasLayer(const Claim& claim, const Cell& cell, std::int64_t layer) {
    const std::int64_t layers = cell.job.Int("model.layers");
    return layer < layers || Fail(claim.place, Concat(layer),
                                  Concat("layer ", layer, " does not exist: the models of ",
                                         cell.pe_label, " have ", layers, ", which count from 0"));
  }

  // A metric that the analysis does not measure would never have a value.
  bool CheckAnalyses(const Claim& claim, const std::vector<BoundTerm>& terms) {
    for (const std::string& name : MetricsOf(claim)) {
      const auto metric = results::ParseMetric(name);
      if (!metric.ok()) continue;
      for (const BoundTerm& term : terms) {
        const Cell& cell = bound_.configurations[term.configuration];
        if (!IsMeasured(claim, *metric, cell)) return false;
      }
    }
    return true;
  }
  bool IsMeasured(const Claim& claim, const results::Metric& metric, const Cell& cell) {
    if (metric.analysis == "layer_ablation") return HasLayer(claim, cell, metric.number);
    if (metric.analysis == "cumulative_ablation") return HasHeads(claim, metric, cell);
    return metric.analysis != "split_accuracy" || HasSplit(claim, metric, cell);
  }
  bool HasSplit(const Claim& claim, const results::Metric& metric, const Cell& cell) {
    const std::vector<std::string> splits = bound_.sweep.SplitsOf(cell.job);
    return std::find(splits.begin(), splits.end(), metric.split) != splits.end() ||
           Fail(claim.place, metric.name,
                Concat(cell.task_label, " has no split ", metric.split,
                       "; its splits: ", Join(splits, ", ")));
  }
  // The heads that are taken away one after another.
  bool HasHeads(const Claim& claim, const results::Metric& metric, const Cell& cell) {
    std::int64_t heads = cell.job.Int("model.layers") * cell.job.Int("model.heads");
    for (const experiment::Analysis& analysis : bound_.sweep.analyses()) {
      if (analysis.name != metric.analysis) continue;
      heads = std::min(heads,
                       std::get<std::int64_t>(analysis.parameters.at("cumulative_ablation.steps")));
    }
    return metric.number <= heads ||
           Fail(claim.place, metric.name,
                Concat("only ", heads, " heads of the models of ", cell.pe_label,
                       " are taken away (cumulative_ablation.steps in the sweep's analyses)"));
  }

  static void SetSides(const Claim& claim, const std::vector<BoundTerm>& terms, BoundClaim* bound) {
    const auto add_above = [&](Statistic statistic, double limit) {
      const std::size_t at = bound->statistics.size();
      bound->statistics.push_back(std::move(statistic));
      bound->holds.push_back({at, true, limit});
      bound->fails.push_back({at, false, limit});
    };
    switch (claim.kind) {
      case Kind::kAbove:
        for (const auto& [a, b] : claim.pairs) {
          add_above({{terms[a].configuration, 1}, {terms[b].configuration, -1}}, claim.low);
        }
        break;
      case Kind::kBetween:
      case Kind::kNear:
        bound->statistics = {terms};
        bound->holds = {{0, true, claim.low}, {0, false, claim.high}};
        bound->fails = {{0, false, claim.low}, {0, true, claim.high}};
        break;
      case Kind::kMost:
        add_above(terms, 0.5);  // 1 with the property, 0 without
        break;
      case Kind::kContrast:
        add_above(terms, claim.low);
        break;
    }
  }

  BoundSheet& bound_;
  experiment::Violations& violations_;
  db::SpecFilter filter_;
  std::map<std::string, Positions> matching_;  // by condition
  std::string cells_text_;
  std::size_t checks_ = 0;
};

}  // namespace

absl::Status CheckCanBeSettled(const BoundSheet& sheet) {
  std::set<std::string, std::less<>> measured;
  for (const experiment::Analysis& analysis : sheet.sweep.analyses()) {
    measured.insert(analysis.name);
  }
  for (const BoundClaim& bound : sheet.claims) {
    for (const std::string& metric : MetricsOf(sheet.sheet.claims[bound.claim])) {
      const std::string_view analysis = AnalysisOf(metric);
      if (analysis.empty() || measured.count(analysis) > 0) continue;
      return absl::InvalidArgumentError(
          Concat("claim ", bound.id, " is about ",
                 analysis == "head_ablation" ? "what heads are worth" : metric,
                 ", but the jobs of sweep ", Escape(sheet.sweep.name()),
                 " do not measure it; the sweep needs analyses: [", analysis, "]"));
    }
  }
  return absl::OkStatus();
}

experiment::SweepResult ParseSweepOf(const Sheet& sheet, const std::string& document) {
  experiment::SweepResult parsed = experiment::ParseSweep(document, {{"seed", "0"}});
  if (sheet.sweep_document.empty()) return parsed;
  for (experiment::Violation& violation : parsed.violations) {
    violation.line = sheet.sweep_place.line;
    violation.column = sheet.sweep_place.column;
    violation.path = Concat("sweep.", violation.path);
  }
  return parsed;
}

std::string HashOf(const std::string& sheet_document, const std::string& sweep_document) {
  return Sha256Hex(sheet_document + std::string(1, '\0') + sweep_document);
}

BindResult Bind(const Sheet& sheet, const experiment::Sweep& sweep) {
  BoundSheet bound{.sheet = sheet, .sweep = sweep};
  for (std::uint64_t i = 0; i < sweep.cells(); ++i) {
    if (auto cell = sweep.At(i)) bound.configurations.push_back(*std::move(cell));
  }
  experiment::Violations violations;
  Binder(&bound, &violations).BindAll();
  BindResult result;
  if (violations.empty()) result.bound = std::move(bound);
  result.violations = violations.TakeSorted();
  return result;
}

}  // namespace pelab::claims
