#include "client/terminal/claim_tables.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <iterator>

#include "absl/strings/str_split.h"
#include "client/options/outputs.h"
#include "client/terminal/put.h"
#include "client/terminal/table.h"
#include "core/base/strings.h"
#include "core/claims/evidence_json.h"
#include "core/claims/metric.h"
#include "core/claims/summary.h"
#include "core/render/text.h"

namespace pelab::client {
namespace {

using claims::BoundClaim;
using claims::Claim;
using claims::Estimate;
using claims::Evidence;
using claims::Summary;
using claims::Verdict;
using render::Column;
using render::Json;

// "0.25", "56.8", "2.6e+06".
std::string EText(double log_e) {
  const double e = std::exp(log_e);
  if (e < 1e5) return render::Fixed(e, e >= 100 ? 0 : e >= 10 ? 1 : 2);
  char text[32];
  std::snprintf(text, sizeof text, "%.1e", e);
  return text;
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

// 2, or 3 where both the mean and its interval would be 0.00. More decimals would leave no room for
// the names of claims.
int EstimateDecimals(const Estimate& estimate) {
  const double size =
      std::max(estimate.t_half_width.value_or(0), std::abs(estimate.mean.value_or(1)));
  return size >= 0.005 ? 2 : 3;
}

// Without "-0.00".
std::string Rounded(double value, int decimals) {
  return render::Fixed(std::abs(value) < 0.5 * std::pow(10, -decimals) ? 0 : value, decimals);
}
std::string Signed(double value, int decimals) {
  const std::string text = Rounded(value, decimals);
  return Concat(text.starts_with('-') ? "" : "+", text);
}
std::string LimitText(double limit, int decimals, const char* infinite) {
  return std::isfinite(limit) ? Rounded(limit, decimals) : infinite;
}
std::string MeanText(const Estimate& estimate) {
  if (!estimate.mean) return "-";
  const int decimals = EstimateDecimals(estimate);
  return Concat(
      Signed(*estimate.mean, decimals),
      estimate.t_half_width ? Concat(" ± ", render::Fixed(*estimate.t_half_width, decimals)) : "");
}
std::string MedianText(const Estimate& estimate) {
  if (!std::isfinite(estimate.median.low) && !std::isfinite(estimate.median.high)) return "-";
  const int decimals = EstimateDecimals(estimate);
  return Concat(LimitText(estimate.median.low, decimals, "-inf"), "…",
                LimitText(estimate.median.high, decimals, "inf"));
}

// The limits of the share of seeds that show the claim.
std::string ShareText(const Evidence& evidence, const Summary& summary) {
  if (evidence.e.eligible == 0) return "-";
  return Concat(render::Fixed(summary.share.low, 2), "…", render::Fixed(summary.share.high, 2));
}

// The seeds that show the claim. Those that show neither it nor its contrary are named, because
// "0 of 4" would read as a claim that fails.
std::string SeedsText(const Evidence& evidence, const stats::SignCount& shows) {
  std::string text = Concat(shows.successes, " of ", shows.trials);
  const std::int64_t left_out = evidence.e.seeds - evidence.e.eligible;
  if (evidence.e.eligible == 0 && left_out > 0) {
    return Concat(text, ", ", left_out, " out");
  }
  if (evidence.holds.size() != 1 || evidence.fails.size() != 1) return text;
  const std::int64_t ties = shows.trials - shows.successes - evidence.fails.front().count.successes;
  return ties > 0 ? Concat(text, ", ", render::Counted(ties, "tie")) : text;
}

// The standing in words. "futile" is the word of the stored rows.
std::string StandingText(const std::string& standing) {
  return standing == "futile" ? "given up" : standing;
}

// The columns about the evidence of claim `i`: e, the number of seeds that show the claim, the
// limits of their share, the size of what is claimed, and the slot time.
constexpr const char* kEvidenceColumns[] = {"e", "seeds", "share", "mean ± t", "median", "cost"};
// A narrower terminal has no room for the costs, which stand last.
constexpr int kWidthForCosts = 100;
std::size_t EvidenceColumnsIn(int width) {
  return std::size(kEvidenceColumns) - (width < kWidthForCosts ? 1 : 0);
}
std::vector<std::string> EvidenceTexts(const JudgedSheet& judged, std::size_t i) {
  const Evidence& evidence = judged.evidence[i];
  const Claim& claim = judged.sheet.sheet.claims[judged.sheet.claims[i].claim];
  const Summary summary = SummaryOf(claim.kind, evidence);
  const Estimate& estimate = summary.estimate;
  // A property has no size: the share says it all.
  const bool sized = claim.kind != claims::Kind::kMost;
  return {EText(std::max(evidence.e.log_holds, evidence.e.log_fails)),
          SeedsText(evidence, summary.shows),
          ShareText(evidence, summary),
          sized ? MeanText(estimate) : "-",
          sized ? MedianText(estimate) : "-",
          evidence.seeds.empty() ? "-" : render::FormatSeconds(evidence.slot_seconds)};
}

// The verdict of claim `i`; if it is undecided after a round, its standing takes its place.
std::string VerdictText(const JudgedSheet& judged, std::size_t i) {
  const Verdict verdict = judged.judgements[i].verdict;
  if (claims::IsDecided(verdict) || judged.claims.empty()) return claims::NameOf(verdict);
  std::string standing = StandingText(judged.claims[i].standing());
  if (verdict == Verdict::kUndecided) return standing;
  return Concat(claims::NameOf(verdict), standing == "open" ? ", open" : "");
}

Json EachJson(const Claim& claim, const BoundClaim& bound) {
  Json each = Json::object();
  for (std::size_t i = 0; i < claim.each.size(); ++i) each[claim.each[i]] = bound.each[i];
  return each;
}

// Whether claim `i` gets further seeds: "open", "decided", "all seeds", "futile" or "put
// aside". Null if no round has ended.
Json StandingOf(const JudgedSheet& judged, std::size_t i) {
  if (judged.claims.empty()) return nullptr;
  return judged.claims[i].standing();
}
// How many seeds of claim `i` were stored before the sheet was registered.
std::int64_t ExploratoryOf(const JudgedSheet& judged, std::size_t i) {
  if (!judged.registered) return judged.evidence[i].e.seeds;
  return judged.claims.empty() ? 0 : judged.claims[i].exploratory();
}
// "confirmatory", "exploratory" or "both"; null without seeds.
Json RestsOn(const JudgedSheet& judged) {
  std::int64_t seeds = 0, exploratory = 0;
  for (std::size_t i = 0; i < judged.evidence.size(); ++i) {
    seeds += judged.evidence[i].e.seeds;
    exploratory += ExploratoryOf(judged, i);
  }
  if (seeds == 0) return nullptr;
  return exploratory == 0 ? "confirmatory" : exploratory == seeds ? "exploratory" : "both";
}

Json RowOf(const JudgedSheet& judged, std::size_t i) {
  const BoundClaim& bound = judged.sheet.claims[i];
  const Claim& claim = judged.sheet.sheet.claims[bound.claim];
  const Evidence& evidence = judged.evidence[i];
  Json row = {{"id", bound.id},
              {"says", claim.says},
              {"source", claim.source},
              {"metric", claims::ValueName(claim)},
              {"verdict", claims::NameOf(judged.judgements[i].verdict)},
              {"e_holds", std::exp(evidence.e.log_holds)},
              {"e_fails", std::exp(evidence.e.log_fails)},
              {"threshold", std::exp(judged.judgements[i].log_threshold)},
              {"seeds", evidence.e.seeds},
              {"eligible", evidence.e.eligible},
              {"exploratory", ExploratoryOf(judged, i)},
              {"standing", StandingOf(judged, i)}};
  row.update(claims::ToJson(SummaryOf(claim.kind, evidence)));
  return row;
}

// "2 claims hold", but "1 claim holds".
std::string ClaimsDo(Verdict verdict, std::int64_t count) {
  std::string does = claims::NameOf(verdict);
  if (claims::IsDecided(verdict) && count != 1) does.pop_back();
  return does;
}

std::string CountsText(const std::vector<claims::Judgement>& judgements) {
  std::vector<std::string> parts;
  for (const Verdict verdict :
       {Verdict::kHolds, Verdict::kFails, Verdict::kUndecided, Verdict::kNotEligible}) {
    const auto count =
        std::count_if(judgements.begin(), judgements.end(),
                      [&](const claims::Judgement& one) { return one.verdict == verdict; });
    if (count > 0) parts.push_back(Concat(count, " ", ClaimsDo(verdict, count)));
  }
  return Join(parts, ", ");
}

// The note about e: what it is, and the threshold of a verdict.
std::string ThresholdsText(const JudgedSheet& judged) {
  std::optional<double> met, next;
  std::int64_t decided = 0;
  for (const claims::Judgement& judgement : judged.judgements) {
    if (!claims::IsDecided(judgement.verdict)) {
      next = judgement.log_threshold;
      continue;
    }
    met = judgement.log_threshold;
    ++decided;
  }
  const auto claims = static_cast<std::int64_t>(judged.judgements.size());
  std::string text = Concat(
      "e: the larger of two e-values, for the claim and against it\na claim is decided if e is at "
      "least 2 x ",
      render::Counted(claims, "claim"), " / (",
      render::Shortest(judged.sheet.sheet.false_discovery_rate), " x decided claims)\n",
      "this threshold is ");
  if (met) text += Concat(EText(*met), " for the ", decided, " decided");
  if (next) text += Concat(met ? ", " : "", EText(*next), met ? " for one more" : " for the first");
  return text + "\n";
}

// "registered 2026-11-25 09:20 (3fa9c2d1): …", and what it rests on and has cost.
std::string RegistrationText(const JudgedSheet& judged) {
  const v1::SheetRow& row = *judged.registered;
  std::string text = Concat("registered ", render::FormatTime(row.created_at_ms()),
                            " with SHA-256 ", row.sha256().substr(0, 12), "…\n");
  if (row.fresh_from() <= row.first_seed()) {
    text += Concat("confirmatory: its seeds, from ", row.first_seed(),
                   " on, were trained after that\n");
  } else {
    text += Concat("exploratory up to seed ", row.fresh_from() - 1,
                   ", which was stored before; confirmatory from seed ", row.fresh_from(), " on\n");
  }
  text += Concat(render::Counted(row.ended_rounds(), "round"), ", ",
                 render::Counted(judged.jobs, "job"), ", ",
                 render::FormatSeconds(judged.slot_seconds), " of slot time\n");
  if (row.rounds() > row.ended_rounds()) {
    text += Concat("round ", row.rounds(), " has not ended: its seeds do not count yet (pelab ",
                   "settle goes on with it)\n");
  }
  if (judged.changed.empty()) return text;
  return Concat(text, "the stored results do not give the verdicts' e-values any more: ",
                Join(judged.changed, ", "), "\n");
}

std::string UnregisteredText(const JudgedSheet& judged) {
  if (!judged.namesake) {
    return "exploratory: the sheet is not registered (pelab settle registers it)\n";
  }
  const std::int64_t other = judged.namesake->sheet_id();
  return Concat("exploratory: the sheet is not registered; sheet ", other,
                " has its name and says ", "something else (pelab claims diff ", other,
                " compares them)\n");
}

Json RegisteredJson(const JudgedSheet& judged) {
  if (!judged.registered) return nullptr;
  const v1::SheetRow& row = *judged.registered;
  return {{"sheet_id", row.sheet_id()},
          {"at_ms", row.created_at_ms()},
          {"owner", row.owner()},
          {"sweep_id", row.has_sweep_id() ? Json(row.sweep_id()) : Json(nullptr)},
          {"first_seed", row.first_seed()},
          {"fresh_from", row.fresh_from()},
          {"slots", row.slots()},
          {"rounds", row.ended_rounds()},
          {"jobs", judged.jobs},
          {"slot_seconds", judged.slot_seconds},
          {"changed", judged.changed}};
}

// What the standings in the table mean, for those that are there.
std::string StandingsText(const JudgedSheet& judged) {
  const auto any = [&](const char* standing) {
    return std::any_of(judged.claims.begin(), judged.claims.end(),
                       [&](const v1::SheetClaimRow& row) { return row.standing() == standing; });
  };
  std::string text;
  if (any("open")) text += "open: gets further seeds with pelab settle\n";
  const std::int64_t most = judged.sheet.sheet.max_seeds;
  if (any("all seeds")) text += Concat("all seeds: has the ", most, " of max_seeds\n");
  if (any("futile")) {
    text += Concat("given up: unlikely (below 5 %) to be decided by the ", most, " of max_seeds\n");
  }
  if (any("put aside")) text += "put aside: gets no further seeds, by pelab settle --put-aside\n";
  const bool unlearned = std::any_of(
      judged.judgements.begin(), judged.judgements.end(),
      [](const claims::Judgement& one) { return one.verdict == Verdict::kNotEligible; });
  if (unlearned) {
    text +=
        "not eligible: fewer than half of the seeds have learned enough (`eligible` in the sheet)\n"
        "out: seeds that have learned too little\n";
  }
  return text;
}

// Names the claims that no seed says anything about.
std::string WithoutSeedsText(const JudgedSheet& judged) {
  std::vector<std::string> ids;
  bool ablation = false;
  for (std::size_t i = 0; i < judged.evidence.size(); ++i) {
    if (!judged.evidence[i].seeds.empty()) continue;
    const BoundClaim& bound = judged.sheet.claims[i];
    ids.push_back(bound.id);
    ablation = ablation || claims::IsAboutAblation(judged.sheet.sheet.claims[bound.claim].metric);
  }
  if (ids.empty()) return "";
  return Concat("no seed is complete for ", Join(ids, ", "),
                ablation ? " (pelab analyze adds head ablations to trained jobs)" : "",
                judged.later_seed
                    ? Concat("\nthe first complete seed is ", *judged.later_seed, ": --first-seed ",
                             *judged.later_seed, " counts from there on")
                    : "",
                "\n");
}

std::string Share(double rate) { return Concat(render::Shortest(100 * rate), " %"); }

// What the words and numbers of the table mean.
std::string NotesText(const JudgedSheet& judged, bool costs) {
  return Concat(StandingsText(judged), ThresholdsText(judged), "at most ",
                Share(judged.sheet.sheet.false_discovery_rate),
                " of the decided claims are expected to be wrong, whenever one looks\n",
                "seeds: that show the claim, of those that count; of several parts, the weakest\n"
                "tie: a seed that shows neither the claim nor its contrary\n",
                "share: of all seeds, those that show it\n"
                "share and median: 95 % limits, which hold whenever one looks\n"
                "mean ± t: Student's 95 % interval, for a number of seeds that was fixed before\n",
                costs ? "cost: slot time of all its cells, which claims can share\n" : "");
}

}  // namespace

std::string VerdictsText(const JudgedSheet& judged, const render::Style& style) {
  std::vector<Column> columns = {{"claim", Column::Align::kLeft, true}, {"verdict"}};
  const std::size_t shown = EvidenceColumnsIn(style.width);
  for (std::size_t at = 0; at < shown; ++at) {
    columns.push_back({kEvidenceColumns[at], Column::Align::kRight});
  }
  render::Table table(columns);
  for (std::size_t i = 0; i < judged.evidence.size(); ++i) {
    std::vector<std::string> row = {judged.sheet.claims[i].id, VerdictText(judged, i)};
    std::vector<std::string> texts = EvidenceTexts(judged, i);
    row.insert(row.end(), texts.begin(), texts.begin() + static_cast<std::ptrdiff_t>(shown));
    table.AddRow(row, Color(judged.judgements[i].verdict));
  }
  const claims::Sheet& sheet = judged.sheet.sheet;
  const std::string title =
      judged.registered
          ? Concat("sheet ", judged.registered->sheet_id(), " ", sheet.name)
          : Concat("sheet ", sheet.name, " on the jobs of ", render::Escape(judged.source));
  return Concat(title, ": ", CountsText(judged.judgements), "\n", table.Render(style),
                WithoutSeedsText(judged), NotesText(judged, shown == std::size(kEvidenceColumns)),
                judged.registered ? RegistrationText(judged) : UnregisteredText(judged));
}

render::Json VerdictsJson(const JudgedSheet& judged) {
  const claims::CellLabels labels(judged.sheet.configurations);
  Json claims_json = Json::array();
  for (std::size_t i = 0; i < judged.evidence.size(); ++i) {
    Json claim = RowOf(judged, i);
    const BoundClaim& bound = judged.sheet.claims[i];
    claim["claim"] = judged.sheet.sheet.claims[bound.claim].id;
    claim["each"] = EachJson(judged.sheet.sheet.claims[bound.claim], bound);
    claim["sides"] = claims::SidesJson(judged.evidence[i]);
    claim["statistics"] = claims::StatisticsJson(judged.sheet, labels, bound, judged.evidence[i]);
    claims_json.push_back(std::move(claim));
  }
  return {{"sheet", judged.sheet.sheet.name},
          {"sha256", judged.sha256},
          {"false_discovery_rate", judged.sheet.sheet.false_discovery_rate},
          {"rests_on", RestsOn(judged)},
          {"registered", RegisteredJson(judged)},
          {"claims", claims_json}};
}

std::vector<std::string> VerdictColumns() {
  return {"id",       "says",    "source",       "kind",       "metric",      "verdict",
          "e_holds",  "e_fails", "threshold",    "seeds",      "eligible",    "leans_to",
          "k",        "n",       "shows",        "share_low",  "share_high",  "exploratory",
          "standing", "mean",    "t_half_width", "median_low", "median_high", "slot_seconds"};
}

render::Json VerdictRows(const JudgedSheet& judged) {
  Json rows = Json::array();
  for (std::size_t i = 0; i < judged.evidence.size(); ++i) rows.push_back(RowOf(judged, i));
  return rows;
}

PaperTable VerdictsPaper(const JudgedSheet& judged) {
  const bool standings = !judged.claims.empty();
  PaperTable table{
      .caption = Concat("Sheet ", judged.sheet.sheet.name, ": ", CountsText(judged.judgements)),
      .columns = {{"claim"}, {"in words"}, {"source"}, {"verdict"}}};
  if (standings) table.columns.push_back({"standing"});
  for (const char* name : kEvidenceColumns) table.columns.push_back({name, true});
  for (std::size_t i = 0; i < judged.evidence.size(); ++i) {
    const Claim& claim = judged.sheet.sheet.claims[judged.sheet.claims[i].claim];
    std::vector<std::string> row = {judged.sheet.claims[i].id, claim.says, claim.source,
                                    claims::NameOf(judged.judgements[i].verdict)};
    if (standings) row.push_back(StandingText(judged.claims[i].standing()));
    for (std::string& text : EvidenceTexts(judged, i)) row.push_back(std::move(text));
    table.rows.push_back(std::move(row));
  }
  const std::string notes =
      Concat(NotesText(judged, true), judged.registered ? RegistrationText(judged) : "");
  table.notes = absl::StrSplit(notes, '\n', absl::SkipEmpty());
  return table;
}

void PutVerdicts(const Context& context, const JudgedSheet& judged) {
  if (const auto paper = PaperOf(context.options.output_name)) {
    const PaperTable table = VerdictsPaper(judged);
    return context.out(Concat(*paper == Paper::kLatex ? ToLatex(table) : ToMarkdown(table), "\n"));
  }

  Put(context, {.json = [&] { return VerdictsJson(judged); },
                .text = [&] { return VerdictsText(judged, context.style); },
                .rows = "claims",
                .columns = VerdictColumns(),
                .csv = [&] { return VerdictRows(judged); }});
}

}  // namespace pelab::client
