// Head ablations drawn as text, averaged over seeds. Pure functions: thread-safe.
#pragma once

#include <string>
#include <vector>

#include "client/terminal/plot.h"
#include "core/results/ablation.h"
#include "core/results/cells.h"
#include "core/results/variants.h"
#include "pelab/v1/results.pb.h"

namespace pelab::client {

// The map of one group and one variant of the ablation.
struct AblationMap {
  render::HeatMap map;
  double strongest = 0;  // the largest value; -infinity if there is none
  results::AblationMetric metric = results::AblationMetric::kAccuracyDrop;
  bool by_rank = false;
  // Empty for a single seed. Otherwise: the map of each seed, by head number, and a sentence per
  // layer about the head that leads there.
  std::vector<render::HeatMap> seeds;
  std::vector<std::string> leads;
};
std::vector<AblationMap> AblationMaps(const results::CellTable& cells,
                                      const std::vector<v1::HeadAblationRow>& rows,
                                      const results::Variants& variants,
                                      results::AblationMetric metric,
                                      results::HeadOrder order = results::HeadOrder::kByEncoding);

// The map. For several seeds also the leading heads, and below them the map of each seed on one
// common scale.
std::string AblationMapText(const AblationMap& map, const render::Style& style);

// The heads of each layer along one axis, which shows whether one of them stands out.
std::string AblationStripText(const AblationMap& map, const render::Style& style);

// Explains the numbers and marks of these maps, to print once below them; empty if there are no
// maps.
std::string AblationNotes(const std::vector<AblationMap>& maps, const render::Style& style);

}  // namespace pelab::client
