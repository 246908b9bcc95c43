#include "client/terminal/claim_tables.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "client/terminal/table.h"
#include "core/base/strings.h"
#include "core/claims/metric.h"
#include "core/render/text.h"

namespace pelab::client {
namespace {

using claims::BoundClaim;
using claims::Claim;
using claims::Estimate;
using claims::Evidence;
using claims::SideEvidence;
using claims::Verdict;
using render::Column;
using render::Json;

constexpr Column::Align kRight = Column::Align::kRight;

// "0.25", "56.8", "2.6e+06".
std::string EText(double log_e) {
  const double e = std::exp(log_e);
  if (e < 1e5) return render::Fixed(e, e >= 100 ? 0 : e >= 10 ? 1 : 2);
  char text[32];
  std::snprintf(text, sizeof text, "%.1e", e);
  return text;
}

// Whether the seeds speak for the claim rather than against it.
bool LeansToHold(const Evidence& evidence) { return evidence.log_e_holds >= evidence.log_e_fails; }

// The side that decides: of a claim that the seeds speak for, its weakest side; otherwise the
// strongest side of "fails".
const SideEvidence& Leading(const Evidence& evidence) {
  const auto less = [](const SideEvidence& a, const SideEvidence& b) { return a.log_e < b.log_e; };
  return LeansToHold(evidence)
             ? *std::min_element(evidence.holds.begin(), evidence.holds.end(), less)
             : *std::max_element(evidence.fails.begin(), evidence.fails.end(), less);
}

std::string Color(Verdict verdict) {
  switch (verdict) {
    case Verdict::kHolds:
      return "32";
    case Verdict::kFails:
      return "31";
    case Verdict::kUndecided:
    case Verdict::kNotEligible:
      return "";
  }
  return "";
}

std::string Signed(double value) { return Concat(value < 0 ? "" : "+", render::Fixed(value, 2)); }
std::string LimitText(double limit, const char* infinite) {
  return std::isfinite(limit) ? render::Fixed(limit, 2) : infinite;
}
std::string MeanText(const Estimate& estimate) {
  if (!estimate.mean) return "-";
  return Concat(
      Signed(*estimate.mean),
      estimate.t_half_width ? Concat(" ± ", render::Fixed(*estimate.t_half_width, 2)) : "");
}
std::string MedianText(const Estimate& estimate) {
  return Concat(LimitText(estimate.median.low, "-inf"), " … ",
                LimitText(estimate.median.high, "inf"));
}

// Infinite limits are null.
Json Finite(double number) { return std::isfinite(number) ? Json(number) : Json(nullptr); }

Json SidesJson(const std::vector<SideEvidence>& sides, const char* of) {
  Json all = Json::array();
  for (const SideEvidence& side : sides) {
    all.push_back({{"of", of},
                   {"statistic", side.side.statistic},
                   {"sign", side.side.above ? "above" : "below"},
                   {"limit", side.side.limit},
                   {"k", side.count.successes},
                   {"n", side.count.trials},
                   {"e", std::exp(side.log_e)}});
  }
  return all;
}

Json StatisticsJson(const claims::BoundSheet& sheet, const BoundClaim& claim,
                    const Evidence& evidence) {
  Json all = Json::array();
  for (std::size_t i = 0; i < claim.statistics.size(); ++i) {
    const Estimate estimate = EstimateOf(evidence, i);
    Json cells = Json::array(), values = Json::array();
    for (const claims::BoundTerm& term : claim.statistics[i]) {
      const experiment::Cell& cell = sheet.configurations[term.configuration];
      cells.push_back({{"pe", cell.pe_label},
                       {"task", cell.job.task},
                       {"protocol", cell.protocol_label},
                       {"weight", term.weight}});
    }
    for (const claims::SeedEvidence& seed : evidence.seeds) {
      values.push_back(
          {{"seed", seed.seed}, {"value", Finite(seed.values[i])}, {"eligible", seed.eligible}});
    }
    all.push_back({{"cells", cells},
                   {"n", estimate.n},
                   {"mean", render::OrNull(estimate.mean)},
                   {"t_half_width", render::OrNull(estimate.t_half_width)},
                   {"median_low", Finite(estimate.median.low)},
                   {"median_high", Finite(estimate.median.high)},
                   {"values", values}});
  }
  return all;
}

Json RowOf(const JudgedSheet& judged, std::size_t i) {
  const BoundClaim& bound = judged.sheet->claims[i];
  const Claim& claim = judged.sheet->sheet.claims[bound.claim];
  const Evidence& evidence = judged.evidence[i];
  const SideEvidence& leading = Leading(evidence);
  const Estimate estimate = EstimateOf(evidence, leading.side.statistic);
  return {{"id", bound.id},
          {"says", claim.says},
          {"source", claim.source},
          {"kind", claims::NameOf(claim.kind)},
          {"metric", claims::ValueName(claim)},
          {"verdict", claims::NameOf(judged.judgements[i].verdict)},
          {"e_holds", std::exp(evidence.log_e_holds)},
          {"e_fails", std::exp(evidence.log_e_fails)},
          {"threshold", std::exp(judged.judgements[i].log_threshold)},
          {"seeds", evidence.seeds.size()},
          {"eligible", evidence.eligible},
          {"leans_to", LeansToHold(evidence) ? "holds" : "fails"},
          {"k", leading.count.successes},
          {"n", leading.count.trials},
          {"mean", render::OrNull(estimate.mean)},
          {"t_half_width", render::OrNull(estimate.t_half_width)},
          {"median_low", Finite(estimate.median.low)},
          {"median_high", Finite(estimate.median.high)}};
}

std::string CountsText(const std::vector<claims::Judgement>& judgements) {
  std::vector<std::string> parts;
  for (const Verdict verdict :
       {Verdict::kHolds, Verdict::kFails, Verdict::kUndecided, Verdict::kNotEligible}) {
    const auto count =
        std::count_if(judgements.begin(), judgements.end(),
                      [&](const claims::Judgement& one) { return one.verdict == verdict; });
    if (count > 0) parts.push_back(Concat(count, " ", claims::NameOf(verdict)));
  }
  return Join(parts, ", ");
}

// "e: …; decided from 60.0 on; the next needs 40.0".
std::string ThresholdsText(const std::vector<claims::Judgement>& judgements) {
  std::optional<double> met, next;
  for (const claims::Judgement& judgement : judgements) {
    const bool decided =
        judgement.verdict == Verdict::kHolds || judgement.verdict == Verdict::kFails;
    (decided ? met : next) = judgement.log_threshold;
  }
  std::string text = "e: evidence for a claim or against it";
  if (met) text += Concat("; decided from ", EText(*met), " on");
  if (next) text += Concat("; the ", met ? "next" : "first", " needs ", EText(*next));
  return text + "\n";
}

// Names the claims that no seed says anything about.
std::string WithoutSeedsText(const JudgedSheet& judged) {
  std::vector<std::string> ids;
  bool ablation = false;
  for (std::size_t i = 0; i < judged.evidence.size(); ++i) {
    if (!judged.evidence[i].seeds.empty()) continue;
    const BoundClaim& bound = judged.sheet->claims[i];
    ids.push_back(bound.id);
    ablation = ablation || claims::IsAboutAblation(judged.sheet->sheet.claims[bound.claim].metric);
  }
  if (ids.empty()) return "";
  return Concat("no seed is complete for ", Join(ids, ", "),
                ablation ? " (pelab analyze adds head ablations to trained jobs)" : "", "\n");
}

std::string Share(double rate) { return Concat(render::Shortest(100 * rate), " %"); }

// "80 jobs, 53m20s of slot time".
std::string JobsText(std::int64_t jobs, const std::optional<double>& seconds) {
  return Concat(jobs, " jobs",
                seconds ? Concat(", ", render::FormatSeconds(*seconds), " of slot time")
                        : ", whose time is unknown");
}

std::string CellLabel(const experiment::Cell& cell) {
  return Concat(cell.pe_label, " ", cell.job.task, " ", cell.protocol_label);
}

}  // namespace

std::string VerdictsText(const JudgedSheet& judged, const render::Style& style) {
  render::Table table({{"claim", Column::Align::kLeft, true},
                       {"verdict"},
                       {"e", kRight},
                       {"seeds", kRight},
                       {"mean ± t", kRight},
                       {"median", kRight}});
  for (std::size_t i = 0; i < judged.evidence.size(); ++i) {
    const claims::BoundClaim& bound = judged.sheet->claims[i];
    const Evidence& evidence = judged.evidence[i];
    const SideEvidence& leading = Leading(evidence);
    const Estimate estimate = EstimateOf(evidence, leading.side.statistic);
    const Verdict verdict = judged.judgements[i].verdict;
    // A property has no size: k of n says it all.
    const bool sized = judged.sheet->sheet.claims[bound.claim].kind != claims::Kind::kMost;
    table.AddRow({bound.id, claims::NameOf(verdict),
                  EText(std::max(evidence.log_e_holds, evidence.log_e_fails)),
                  Concat(leading.count.successes, " of ", leading.count.trials, " ",
                         LeansToHold(evidence) ? "for" : "against"),
                  sized ? MeanText(estimate) : "-", sized ? MedianText(estimate) : "-"},
                 Color(verdict));
  }
  const claims::Sheet& sheet = judged.sheet->sheet;
  return Concat(
      "sheet ", sheet.name, " on ", render::Escape(judged.source), ": ",
      CountsText(judged.judgements), "\n", table.Render(style), WithoutSeedsText(judged),
      ThresholdsText(judged.judgements), "of the decided claims, at most ",
      Share(sheet.false_discovery_rate), " are expected to be wrong, whenever one looks\n",
      "intervals of 95 %: of the mean for a fixed number of seeds, of the median for any\n",
      "exploratory: these seeds were stored before the sheet was registered\n");
}

render::Json VerdictsJson(const JudgedSheet& judged) {
  Json claims_json = Json::array();
  for (std::size_t i = 0; i < judged.evidence.size(); ++i) {
    Json claim = RowOf(judged, i);
    claim["sides"] = SidesJson(judged.evidence[i].holds, "holds");
    for (Json& side : SidesJson(judged.evidence[i].fails, "fails")) {
      claim["sides"].push_back(std::move(side));
    }
    claim["statistics"] =
        StatisticsJson(*judged.sheet, judged.sheet->claims[i], judged.evidence[i]);
    claims_json.push_back(std::move(claim));
  }
  return {{"sheet", judged.sheet->sheet.name},
          {"sha256", judged.sha256},
          {"false_discovery_rate", judged.sheet->sheet.false_discovery_rate},
          {"rests_on", "exploratory"},
          {"claims", claims_json}};
}

std::vector<std::string> VerdictColumns() {
  return {"id",      "says",    "source",    "kind",         "metric",     "verdict",
          "e_holds", "e_fails", "threshold", "seeds",        "eligible",   "leans_to",
          "k",       "n",       "mean",      "t_half_width", "median_low", "median_high"};
}

render::Json VerdictRows(const JudgedSheet& judged) {
  Json rows = Json::array();
  for (std::size_t i = 0; i < judged.evidence.size(); ++i) rows.push_back(RowOf(judged, i));
  return rows;
}

std::string CostText(const claims::BoundSheet& sheet, const SheetCost& cost,
                     const render::Style& style) {
  render::Table table({{"cell", Column::Align::kLeft, true},
                       {"claims", kRight},
                       {"stored seeds", kRight},
                       {"a seed takes", kRight}});
  for (const CellCost& cell : cost.cells) {
    table.AddRow({CellLabel(sheet.configurations[cell.configuration]), Concat(cell.claims),
                  Concat(cell.stored),
                  cell.seconds_per_seed ? render::FormatSeconds(*cell.seconds_per_seed) : "-"});
  }
  const auto cells = static_cast<std::int64_t>(cost.cells.size());
  const auto line = [&](const std::string& what, std::int64_t seeds) {
    const double times = static_cast<double>(seeds);
    return Concat(what, ": ",
                  JobsText(cells * seeds, cost.seconds_per_seed
                                              ? std::optional(*cost.seconds_per_seed * times)
                                              : std::nullopt),
                  "\n");
  };
  const std::int64_t most = sheet.sheet.max_seeds;
  std::string text =
      Concat(table.Render(style), "sheet ", sheet.sheet.name, ": ", sheet.claims.size(),
             " claims about ", cells, " of the ", sheet.configurations.size(), " cells of sweep ",
             render::Escape(sheet.sweep.name()), "\n", line("one seed of each", 1));
  if (cost.fewest_seeds <= most) {
    text += line(Concat("the ", cost.fewest_seeds,
                        " seeds with which claims can be decided if "
                        "every seed agrees"),
                 cost.fewest_seeds);
  } else {
    text += Concat("max_seeds is ", most, ", but no claim can be decided with fewer than ",
                   cost.fewest_seeds, " seeds\n");
  }
  text += line(Concat("all ", most, " seeds of max_seeds"), most);
  if (cost.seconds_per_seed && cost.without_times > 0) {
    text += Concat(cost.without_times,
                   " cells have no stored times and are taken as the mean of "
                   "the others\n");
  }
  return text + "nothing was run\n";
}

render::Json CostJson(const claims::BoundSheet& sheet, const SheetCost& cost) {
  Json cells = Json::array();
  for (const CellCost& cell : cost.cells) {
    const experiment::Cell& of = sheet.configurations[cell.configuration];
    cells.push_back({{"pe", of.pe_label},
                     {"task", of.job.task},
                     {"protocol", of.protocol_label},
                     {"claims", cell.claims},
                     {"stored", cell.stored},
                     {"seconds_per_seed", render::OrNull(cell.seconds_per_seed)}});
  }
  Json ids = Json::array();
  for (const BoundClaim& claim : sheet.claims) ids.push_back(claim.id);
  return {{"sheet", sheet.sheet.name},
          {"claims", ids},
          {"max_seeds", sheet.sheet.max_seeds},
          {"fewest_seeds", cost.fewest_seeds},
          {"seconds_per_seed", render::OrNull(cost.seconds_per_seed)},
          {"cells", cells}};
}

}  // namespace pelab::client
