#include "core/results/ablation.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <map>
#include <type_traits>
#include <utility>

#include "core/base/strings.h"
#include "core/catalog/heads.h"
#include "core/results/rows.h"
#include "core/stats/deposit.h"
#include "core/stats/seeds.h"

namespace pelab::results {
namespace {

using render::Json;

// Half the width of a 95 % interval, in standard errors.
constexpr double kNormal95 = 1.959963984540054;

struct Named {
  AblationMetric metric;
  const char* name;
};
constexpr Named kMetrics[] = {{AblationMetric::kAccuracyDrop, "accuracy_drop"},
                              {AblationMetric::kNllDrop, "nll_drop"},
                              {AblationMetric::kNormalizedDrop, "normalised_drop"}};

// Means of the values added to each entry of a row-major matrix of this shape.
class Means {
 public:
  Means(int layers, int heads)
      : values_(static_cast<std::size_t>(layers) * heads),
        counts_(values_.size(), 0),
        significant_(values_.size(), 0) {}

  void Add(std::size_t at, const EntryDrop& drop) {
    values_[at].push_back(drop.value);
    counts_[at] += drop.counts ? 1 : 0;
    significant_[at] += drop.may_be_chance() ? 0 : 1;
  }
  MeanDrops Get() const {
    MeanDrops out{.drops = {}, .n = {}, .counts = counts_, .significant = significant_};
    for (const std::vector<double>& values : values_) {
      out.drops.push_back(values.empty() ? std::nullopt : std::optional(stats::Mean(values)));
      out.n.push_back(static_cast<int>(values.size()));
    }
    return out;
  }

 private:
  std::vector<std::vector<double>> values_;
  std::vector<int> counts_;
  std::vector<int> significant_;
};

// The entries that a seed has in a layer, by head.
std::vector<std::pair<int, EntryDrop>> Layer(const SeedDrops& seed, int layer, int heads) {
  std::vector<std::pair<int, EntryDrop>> there;
  for (int head = 0; head < heads; ++head) {
    const auto& drop = seed.drops[static_cast<std::size_t>(layer) * heads + head];
    if (drop) there.emplace_back(head, *drop);
  }
  return there;
}

LayerLead LeadOf(const std::vector<SeedDrops>& seeds, int layer, int heads) {
  LayerLead lead{.layer = layer};
  std::map<int, int> times;
  for (const SeedDrops& seed : seeds) {
    const EntryDrop* largest = nullptr;
    int head = 0;
    const auto entries = Layer(seed, layer, heads);
    for (const auto& [its_head, drop] : entries) {
      if (!drop.counts || (largest != nullptr && drop.value <= largest->value)) continue;
      largest = &drop;
      head = its_head;
    }
    if (largest == nullptr) continue;
    ++lead.of;
    ++times[head];
  }
  for (const auto& [head, seeds_led] : times) {
    if (seeds_led <= lead.seeds) continue;
    lead.head = head;
    lead.seeds = seeds_led;
  }
  return lead;
}

void PutTogether(MeanAblation& mean) {
  Means by_index(mean.layers, mean.heads), by_rank(mean.layers, mean.heads);
  for (int layer = 0; layer < mean.layers; ++layer) {
    const std::size_t begin = static_cast<std::size_t>(layer) * mean.heads;
    for (const SeedDrops& seed : mean.seeds) {
      auto entries = Layer(seed, layer, mean.heads);
      for (const auto& [head, drop] : entries) by_index.Add(begin + head, drop);
      std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
        return a.second.value > b.second.value;
      });
      for (std::size_t rank = 0; rank < entries.size(); ++rank) {
        by_rank.Add(begin + rank, entries[rank].second);
      }
    }
    mean.leads.push_back(LeadOf(mean.seeds, layer, mean.heads));
  }
  mean.by_index = by_index.Get();
  mean.by_rank = by_rank.Get();
}

using AblationRows = std::vector<const v1::HeadAblationRow*>;
using Seeds = std::vector<std::pair<const v1::JobRow*, const AblationRows*>>;

MeanAblation MeanOf(const Cell& cell, const Variant& variant, const Seeds& seeds,
                    AblationMetric metric) {
  MeanAblation mean{.cell = &cell, .variant = variant};
  for (const auto& [job, rows] : seeds) {
    for (const v1::HeadAblationRow* row : *rows) {
      mean.layers = std::max(mean.layers, row->layer() + 1);
      mean.heads = std::max(mean.heads, row->head() + 1);
    }
  }
  for (const auto& [job, rows] : seeds) {
    SeedDrops& seed =
        mean.seeds.emplace_back(SeedDrops{.job_id = job->job_id(),
                                          .seed = job->seed(),
                                          .drops = std::vector<std::optional<EntryDrop>>(
                                              static_cast<std::size_t>(mean.layers) * mean.heads)});
    for (const v1::HeadAblationRow* row : *rows) {
      seed.drops[static_cast<std::size_t>(row->layer()) * mean.heads + row->head()] =
          DropOf(*row, metric);
      seed.row = row;
    }
  }
  PutTogether(mean);
  return mean;
}

template <typename T>
Json Grid(const std::vector<T>& values, int layers, int heads) {
  Json grid = Json::array();
  for (int layer = 0; layer < layers; ++layer) {
    Json row = Json::array();
    for (int head = 0; head < heads; ++head) {
      const T& value = values[static_cast<std::size_t>(layer) * heads + head];
      if constexpr (std::is_same_v<T, std::optional<double>>) {
        row.push_back(value ? Json(*value) : Json(nullptr));
      } else {
        row.push_back(value);
      }
    }
    grid.push_back(std::move(row));
  }
  return grid;
}

Json MeansJson(const MeanDrops& means, int layers, int heads) {
  return {{"drops", Grid(means.drops, layers, heads)},
          {"n", Grid(means.n, layers, heads)},
          {"counts", Grid(means.counts, layers, heads)},
          {"significant", Grid(means.significant, layers, heads)}};
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
      Concat("unknown metric \"", name, "\"; known: ", Join(known, ", ")));
}

std::optional<double> EntryDrop::half_width() const {
  if (!standard_error) return std::nullopt;
  return kNormal95 * *standard_error;
}

bool EntryDrop::may_be_chance() const {
  return standard_error && std::fabs(value) <= stats::kErrorsThatCount * *standard_error;
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
    case AblationMetric::kNormalizedDrop: {
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

bool MeanAblation::ByRank(HeadOrder order) const {
  if (order != HeadOrder::kByEncoding) return order == HeadOrder::kRank;
  return seeds.size() > 1 && !catalog::HeadsDiffer(cell->jobs.front().pe());
}

std::vector<MeanAblation> MeanAblations(const CellTable& cells,
                                        const std::vector<v1::HeadAblationRow>& rows,
                                        const Variants& variants, AblationMetric metric) {
  std::map<std::int64_t, std::map<Variant, AblationRows>> by_job;
  for (const v1::HeadAblationRow& row : rows) {
    const auto variant = variants.find(row.analysis_id());
    if (variant != variants.end()) by_job[row.job_id()][variant->second].push_back(&row);
  }
  std::vector<MeanAblation> means;
  for (const Cell& cell : cells.cells) {
    std::map<Variant, Seeds> of_cell;
    for (const v1::JobRow& job : cell.jobs) {
      const auto found = by_job.find(job.job_id());
      if (found == by_job.end()) continue;
      for (const auto& [variant, heads] : found->second) {
        of_cell[variant].emplace_back(&job, &heads);
      }
    }
    for (const auto& [variant, seeds] : of_cell) {
      means.push_back(MeanOf(cell, variant, seeds, metric));
    }
  }
  return means;
}

std::string LeadText(const LayerLead& lead) {
  const std::string layer = Concat("layer ", lead.layer, ": ");
  if (lead.of == 0) return layer + "no head leads";
  if (lead.of > 1 && lead.seeds == 1) {
    return Concat(layer, "another head leads in each of ", lead.of, " seeds");
  }
  return Concat(layer, "head ", lead.head, " leads in ", lead.seeds, " of ", lead.of,
                lead.of == 1 ? " seed" : " seeds");
}

render::Json ToJson(const MeanAblation& mean) {
  Json ids = Json::array(), leads = Json::array();
  for (const SeedDrops& seed : mean.seeds) ids.push_back(seed.job_id);
  for (const LayerLead& lead : mean.leads) {
    leads.push_back({{"layer", lead.layer},
                     {"head", lead.of == 0 ? Json(nullptr) : Json(lead.head)},
                     {"seeds", lead.seeds},
                     {"of", lead.of}});
  }
  return {{"job_ids", std::move(ids)},
          {"variant", Describe(mean.variant)},
          {"layers", mean.layers},
          {"heads", mean.heads},
          {"heads_differ", catalog::HeadsDiffer(mean.cell->jobs.front().pe())},
          {"by_index", MeansJson(mean.by_index, mean.layers, mean.heads)},
          {"by_rank", MeansJson(mean.by_rank, mean.layers, mean.heads)},
          {"leads", std::move(leads)}};
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
