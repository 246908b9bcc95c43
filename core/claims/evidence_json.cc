#include "core/claims/evidence_json.h"

#include <cmath>
#include <vector>

namespace pelab::claims {
namespace {

void AddSides(const std::vector<SideEvidence>& sides, const char* of, render::Json& all) {
  for (const SideEvidence& side : sides) {
    all.push_back({{"of", of},
                   {"statistic", side.side.statistic},
                   {"sign", side.side.above ? "above" : "below"},
                   {"limit", side.side.limit},
                   {"k", side.count.successes},
                   {"n", side.count.trials},
                   {"e", std::exp(side.log_e)}});
  }
}

}  // namespace

render::Json CellJson(const experiment::Cell& cell, const CellLabels::Settings& settings) {
  render::Json json = {{"pe", cell.pe_label},
                       {"task", cell.task_label},
                       {"protocol", cell.protocol_label},
                       {"settings", render::Json::object()}};
  for (const auto& [field, value] : settings) json["settings"][field] = value;
  return json;
}

render::Json SidesJson(const Evidence& evidence) {
  render::Json all = render::Json::array();
  AddSides(evidence.holds, "holds", all);
  AddSides(evidence.fails, "fails", all);
  return all;
}

render::Json StatisticsJson(const BoundSheet& sheet, const CellLabels& labels,
                            const BoundClaim& claim, const Evidence& evidence) {
  render::Json all = render::Json::array();
  for (std::size_t i = 0; i < claim.statistics.size(); ++i) {
    const Estimate estimate = EstimateOf(evidence, i);
    render::Json cells = render::Json::array(), values = render::Json::array();
    for (const BoundTerm& term : claim.statistics[i]) {
      const experiment::Cell& cell = sheet.configurations[term.configuration];
      cells.push_back(CellJson(cell, labels.SettingsOf(term.configuration)));
      cells.back()["weight"] = term.weight;
    }
    for (const SeedEvidence& seed : evidence.seeds) {
      values.push_back({{"seed", seed.seed},
                        {"value", render::FiniteOrNull(seed.values[i])},
                        {"eligible", seed.eligible}});
    }
    all.push_back({{"cells", cells},
                   {"n", estimate.n},
                   {"mean", render::OrNull(estimate.mean)},
                   {"t_half_width", render::OrNull(estimate.t_half_width)},
                   {"median_low", render::FiniteOrNull(estimate.median.low)},
                   {"median_high", render::FiniteOrNull(estimate.median.high)},
                   {"values", values}});
  }
  return all;
}

}  // namespace pelab::claims
