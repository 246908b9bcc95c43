#include "core/results/ablation.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <utility>

#include "core/results/rows.h"
#include "core/stats/deposit.h"
#include "core/stats/seeds.h"
#include "core/views/text.h"

namespace pelab::results {
namespace {

using render::Json;

constexpr double kNormal95 = 1.959963984540054;  // standard errors on each side of a 95 % interval

struct Named {
  AblationMetric metric;
  const char* name;
};
constexpr Named kMetrics[] = {{AblationMetric::kAccuracyDrop, "accuracy_drop"},
                              {AblationMetric::kNllDrop, "nll_drop"},
                              {AblationMetric::kNormalisedDrop, "normalised_drop"}};

// The drops of one head over seeds.
struct Head {
  std::vector<double> shown;
  bool counts = false;  // in any of them
};

struct Matrix {
  std::map<std::pair<int, int>, Head> heads;
  int layers = 0;
  int width = 0;
  std::size_t seeds = 0;
};

void AddSeed(const std::vector<const v1::HeadAblationRow*>& rows, AblationMetric metric,
             Matrix& matrix) {
  ++matrix.seeds;
  for (const v1::HeadAblationRow* row : rows) {
    matrix.layers = std::max(matrix.layers, row->layer() + 1);
    matrix.width = std::max(matrix.width, row->head() + 1);
    const std::optional<EntryDrop> drop = DropOf(*row, metric);
    if (!drop) continue;
    Head& head = matrix.heads[{row->layer(), row->head()}];
    head.shown.push_back(drop->shown());
    head.counts = head.counts || drop->counts;
  }
}

MeanAblation MeanOf(const Cell& cell, const Variant& variant, const Matrix& matrix) {
  const std::size_t entries = static_cast<std::size_t>(matrix.layers) * matrix.width;
  MeanAblation out{.cell = &cell,
                   .variant = variant,
                   .seeds = matrix.seeds,
                   .layers = matrix.layers,
                   .heads = matrix.width,
                   .drops = std::vector<std::optional<double>>(entries),
                   .counts = std::vector<bool>(entries, false)};
  for (const auto& [place, head] : matrix.heads) {
    const std::size_t at = static_cast<std::size_t>(place.first) * matrix.width + place.second;
    out.drops[at] = stats::Mean(head.shown);
    out.counts[at] = head.counts;
  }
  return out;
}

Json Interval(const std::optional<EntryDrop>& drop) {
  if (!drop || !drop->half_width()) return nullptr;
  return Json::array({drop->value - *drop->half_width(), drop->value + *drop->half_width()});
}

Json Counts(const std::optional<EntryDrop>& drop) {
  return drop && drop->standard_error ? Json(drop->counts) : Json(nullptr);
}

}  // namespace

absl::StatusOr<AblationMetric> ParseAblationMetric(const std::string& name) {
  std::vector<std::string> known;
  for (const Named& metric : kMetrics) {
    if (name == metric.name) return metric.metric;
    known.emplace_back(metric.name);
  }
  return absl::InvalidArgumentError(
      Concat("--metric: unknown metric \"", name, "\"; known: ", Join(known, ", ")));
}

std::optional<double> EntryDrop::half_width() const {
  if (!standard_error) return std::nullopt;
  return kNormal95 * *standard_error;
}

EntryDrop Judge(double value, const std::optional<double>& standard_error) {
  return {value, standard_error,
          !standard_error || value > stats::kErrorsThatCount * *standard_error};
}

std::optional<EntryDrop> DropOf(const v1::HeadAblationRow& row, AblationMetric metric) {
  const auto error = [](bool has, double value) {
    return has ? std::optional(value) : std::nullopt;
  };
  switch (metric) {
    case AblationMetric::kAccuracyDrop:
      if (!row.has_accuracy_drop()) return std::nullopt;
      return Judge(row.accuracy_drop(),
                   error(row.has_drop_standard_error(), row.drop_standard_error()));
    case AblationMetric::kNllDrop:
      if (!row.has_nll_drop()) return std::nullopt;
      return Judge(row.nll_drop(),
                   error(row.has_nll_drop_standard_error(), row.nll_drop_standard_error()));
    case AblationMetric::kNormalisedDrop: {
      if (!row.has_normalised_drop()) return std::nullopt;
      if (!stats::StandsOut(row.intact_correct(), row.total(), row.chance())) return std::nullopt;
      const double above_chance =
          static_cast<double>(row.intact_correct()) / static_cast<double>(row.total()) -
          row.chance();
      return Judge(row.normalised_drop(),
                   error(row.has_drop_standard_error(), row.drop_standard_error() / above_chance));
    }
  }
  return std::nullopt;
}

std::vector<MeanAblation> MeanAblations(const CellTable& cells,
                                        const std::vector<v1::HeadAblationRow>& rows,
                                        const Variants& variants, AblationMetric metric) {
  using Rows = std::vector<const v1::HeadAblationRow*>;
  std::map<std::int64_t, std::map<Variant, Rows>> by_job;
  for (const v1::HeadAblationRow& row : rows) {
    const auto variant = variants.find(row.analysis_id());
    if (variant != variants.end()) by_job[row.job_id()][variant->second].push_back(&row);
  }
  std::vector<MeanAblation> means;
  for (const Cell& cell : cells.cells) {
    std::map<Variant, Matrix> matrices;
    for (const v1::JobRow& job : cell.jobs) {
      for (const auto& [variant, heads] : by_job[job.job_id()]) {
        AddSeed(heads, metric, matrices[variant]);
      }
    }
    for (const auto& [variant, matrix] : matrices) means.push_back(MeanOf(cell, variant, matrix));
  }
  return means;
}

render::Json WithIntervals(const v1::HeadAblationRow& row) {
  Json json = ToJson(row);
  const auto drop = DropOf(row, AblationMetric::kAccuracyDrop);
  const auto nll = DropOf(row, AblationMetric::kNllDrop);
  json["drop_counts"] = Counts(drop);
  json["drop_interval"] = Interval(drop);
  json["nll_drop_counts"] = Counts(nll);
  json["nll_drop_interval"] = Interval(nll);
  return json;
}

}  // namespace pelab::results
