#include "client/report/claims.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/base/json_text.h"
#include "core/base/strings.h"
#include "core/pages/assets.h"
#include "core/render/text.h"
#include "core/stats/distributions.h"
#include "core/stats/seeds.h"

namespace pelab::client::report {
namespace {

using render::Json;

constexpr char kHolds[] = "holds";
constexpr char kFails[] = "fails";
constexpr char kUndecided[] = "undecided";
constexpr double kTail = 0.025;

const Json& File() {
  static const Json& file = *new Json(ParseJson<Json>(pages::FindAsset("claims.json")->bytes));
  return file;
}

// A mean over seeds with its interval.
struct Estimate {
  double mean = 0;
  std::optional<double> half;
  double low() const { return half ? mean - *half : -std::numeric_limits<double>::infinity(); }
  double high() const { return half ? mean + *half : std::numeric_limits<double>::infinity(); }
};

std::optional<Estimate> EstimateOf(const std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  return Estimate{stats::Mean(values), stats::IntervalHalfWidth(values)};
}

std::optional<Estimate> EstimateOf(const BySeed& by_seed) {
  std::vector<double> values;
  for (const auto& [seed, value] : by_seed) values.push_back(value);
  return EstimateOf(values);
}

// first - second, over the seeds that both have.
std::optional<Estimate> Paired(const BySeed& first, const BySeed& second) {
  std::vector<double> differences;
  for (const auto& [seed, value] : first) {
    const auto other = second.find(seed);
    if (other != second.end()) differences.push_back(value - other->second);
  }
  return EstimateOf(differences);
}

std::string Percent(const std::optional<Estimate>& value) {
  if (!value) return "no seeds";
  std::string text = render::Fixed(100 * value->mean, 1);
  if (value->half) text += Concat(" ± ", render::Fixed(100 * *value->half, 1));
  return text;
}

std::string Points(const std::optional<Estimate>& difference) {
  if (!difference || difference->mean < 0) return Percent(difference);
  return Concat("+", Percent(difference));
}

std::string Above(const std::optional<Estimate>& difference) {
  if (!difference) return kUndecided;
  return difference->low() > 0 ? kHolds : difference->high() < 0 ? kFails : kUndecided;
}

std::string Inside(const std::optional<Estimate>& value, double low, double high) {
  if (!value) return kUndecided;
  if (value->low() >= low && value->high() <= high) return kHolds;
  return value->high() < low || value->low() > high ? kFails : kUndecided;
}

std::string AllOf(const std::vector<std::string>& verdicts) {
  const auto is = [](const char* verdict) {
    return [verdict](const std::string& one) { return one == verdict; };
  };
  if (std::any_of(verdicts.begin(), verdicts.end(), is(kFails))) return kFails;
  const bool all = !verdicts.empty() && std::all_of(verdicts.begin(), verdicts.end(), is(kHolds));
  return all ? kHolds : kUndecided;
}

std::string OfSeeds(const std::string& must, int k, int n) {
  if (must == "ever") return k > 0 ? kHolds : n >= 3 ? kFails : kUndecided;
  if (n < 3) return kUndecided;
  std::string often = k >= 0.8 * n ? kHolds : k <= 0.2 * n ? kFails : kUndecided;
  if (must == "often" || often == kUndecided) return often;
  return often == kHolds ? kFails : kHolds;
}

std::string ShareText(int k, int n) {
  const auto [low, high] = stats::ClopperPearson(k, n, kTail);
  return Concat("; share ", render::Fixed(low, 2), " to ", render::Fixed(high, 2));
}

// The groups of one protocol and task.
class View {
 public:
  View(const std::vector<ClaimCell>& cells, const std::string& protocol, const std::string& task)
      : cells_(cells), protocol_(protocol), task_(task) {}

  const std::string& protocol() const { return protocol_; }

  // Finds a group by label; partial_rope[k] means the group with RoPE in the first k heads. nullptr
  // if there is none.
  const ClaimCell* Find(const std::string& pe) const {
    constexpr std::string_view kPartial = "partial_rope[";
    const auto fits = [&](const ClaimCell& cell) {
      if (cell.protocol != protocol_ || cell.task != task_) return false;
      if (!pe.starts_with(kPartial)) return cell.pe_label == pe;
      const Json select = cell.Field("pe.select"), heads = cell.Field("pe.heads");
      return cell.Field("pe.name") == "partial_rope" && (select.is_null() || select == "first") &&
             Concat(kPartial, heads.is_null() ? "1" : heads.dump(), "]") == pe;
    };
    const auto found = std::find_if(cells_.begin(), cells_.end(), fits);
    return found == cells_.end() ? nullptr : &*found;
  }

 private:
  const std::vector<ClaimCell>& cells_;
  const std::string& protocol_;
  const std::string& task_;
};

BySeed ValuesOf(const ClaimCell& cell, const std::string& of) {
  if (of == "train") return cell.train;
  if (of == "gap") return cell.gap;
  if (of == "speed") return cell.speed;
  if (of != "max_drop") return cell.test;
  BySeed drops;
  if (const auto* indices = cell.OwnIndices()) {
    for (const auto& [seed, found] : *indices) {
      if (found.defined) drops[seed] = found.max_drop;
    }
  }
  return drops;
}

std::optional<Outcome> Order(const View& view, const Json& rule) {
  std::vector<std::string> verdicts, ours;
  for (const Json& pair : rule["above"]) {
    const std::string first = pair[0], second = pair[1];
    const ClaimCell *one = view.Find(first), *other = view.Find(second);
    if (one == nullptr || other == nullptr) return std::nullopt;
    const auto difference = Paired(ValuesOf(*one, rule["of"]), ValuesOf(*other, rule["of"]));
    verdicts.push_back(Above(difference));
    ours.push_back(Concat(first, " − ", second, ": ", Points(difference)));
  }
  return Outcome{AllOf(verdicts), Join(ours, "; ")};
}

std::optional<Outcome> Near(const View& view, const Json& rule) {
  const std::string first = rule["pair"][0], second = rule["pair"][1];
  const ClaimCell *one = view.Find(first), *other = view.Find(second);
  if (one == nullptr || other == nullptr) return std::nullopt;
  const double margin = rule["margin"].get<double>() / 100;
  const auto difference = Paired(ValuesOf(*one, rule["of"]), ValuesOf(*other, rule["of"]));
  return Outcome{Inside(difference, -margin, margin),
                 Concat(first, " − ", second, ": ", Points(difference))};
}

std::optional<Outcome> Unsolved(const View& view, const Json& rule) {
  const ClaimCell* rope = view.Find("rope");
  if (rope == nullptr) return std::nullopt;
  BySeed half = rope->test;
  for (auto& [seed, value] : half) value /= 2;
  std::vector<std::string> verdicts, ours;
  for (const std::string pe : rule["pes"]) {
    const ClaimCell* cell = view.Find(pe);
    if (cell == nullptr) return std::nullopt;
    verdicts.push_back(Above(Paired(half, cell->test)));
    ours.push_back(Concat(pe, ": ", Percent(EstimateOf(cell->test)), " %"));
  }
  return Outcome{AllOf(verdicts),
                 Concat(Join(ours, "; "), " (rope ", Percent(EstimateOf(rope->test)), " %)")};
}

bool AtPaperSize(const ClaimCell& cell) {
  for (const auto& [name, value] : File()["paper_size"].items()) {
    if (cell.Field(name) != value) return false;
  }
  const Json& examples = File()["paper_examples"];
  return examples.contains(cell.task) && cell.Field("task.train_examples") == examples[cell.task];
}

std::optional<Outcome> Band(const View& view, const Json& rule) {
  const ClaimCell* cell = view.Find(rule["pe"]);
  if (cell == nullptr) return std::nullopt;
  const auto value = EstimateOf(ValuesOf(*cell, rule["of"]));
  if (!AtPaperSize(*cell)) return Outcome{"other size", Percent(value)};
  if (view.protocol() != "published")
    return Outcome{"clean: not the paper's setting", Percent(value)};
  return Outcome{Inside(value, rule["low"].get<double>() / 100, rule["high"].get<double>() / 100),
                 Percent(value)};
}

// Whether the event that the rule counts happened in a seed.
bool Happens(const Indices& found, const Json& rule, int layers) {
  if (rule["of"] == "starts_deeper") return found.top_layer.value_or(0) != 0 && found.max_drop > 0;
  if (rule.contains("layers")) {
    return std::all_of(rule["layers"].begin(), rule["layers"].end(),
                       [&](const Json& layer) { return found.layers.count(layer) > 0; });
  }
  const bool shallow = rule.value("shallow", false);
  return std::any_of(found.layers.begin(), found.layers.end(),
                     [&](int layer) { return !shallow || 2 * layer < layers; });
}

std::optional<Outcome> Seeds(const View& view, const Json& rule) {
  const ClaimCell* cell = view.Find(rule["pe"]);
  if (cell == nullptr) return std::nullopt;
  const std::optional<int> read = IntegerOf<int>(cell->Field("model.layers"));
  if (!read) return std::nullopt;
  const int layers = *read;
  if (rule.value("paper_heads", false) &&
      cell->Field("model.heads") != File()["paper_size"]["model.heads"])
    return std::nullopt;
  if (rule.contains("layers") &&
      *std::max_element(rule["layers"].begin(), rule["layers"].end()) >= Json(layers))
    return std::nullopt;
  const bool true_heads = rule.value("true_heads", false);
  const auto* indices = true_heads ? cell->TrueHeads() : cell->OwnIndices();
  if (true_heads && indices == nullptr) return std::nullopt;
  int k = 0, n = 0, undefined = 0;
  if (indices != nullptr) {
    for (const auto& [seed, found] : *indices) {
      if (!found.defined) {
        ++undefined;
        continue;
      }
      ++n;
      if (Happens(found, rule, layers)) ++k;
    }
  }
  std::string text = Concat(k, " of ", n, " seeds");
  if (undefined > 0) text += Concat(" (", undefined, " undefined)");
  if (n == 0) return Outcome{kUndecided, text};
  return Outcome{OfSeeds(rule["must"], k, n), text + ShareText(k, n)};
}

}  // namespace

std::optional<Outcome> Judge(const std::vector<ClaimCell>& cells, const std::string& protocol,
                             const std::string& task, const Json& rule) {
  const View view(cells, protocol, task);
  const std::string kind = rule["kind"];
  if (kind == "order") return Order(view, rule);
  if (kind == "near") return Near(view, rule);
  if (kind == "unsolved") return Unsolved(view, rule);
  if (kind == "band") return Band(view, rule);
  if (kind == "seeds") return Seeds(view, rule);
  return std::nullopt;
}

Json Paper(const ReportInput& input) {
  const std::vector<ClaimCell> cells = ClaimCells(input);
  Json claims = Json::array();
  for (const Json& claim : File()["claims"]) {
    for (const std::string protocol : {"published", "clean", "matched"}) {
      const auto outcome = Judge(cells, protocol, claim["task"], claim["rule"]);
      if (!outcome) continue;
      claims.push_back({{"figure", claim["figure"]},
                        {"text", claim["claim"]},
                        {"paper", claim["paper"]},
                        {"protocol", protocol},
                        {"ours", outcome->ours},
                        {"verdict", outcome->verdict}});
    }
  }
  return {{"claims", std::move(claims)}, {"rules", File()["rules"]}, {"source", File()["source"]}};
}

}  // namespace pelab::client::report
