// Head ablations drawn, seeds put together. Pure functions: thread-safe.
#pragma once

#include <string>
#include <vector>

#include "client/terminal/plot.h"
#include "core/results/ablation.h"
#include "core/results/cells.h"
#include "core/results/variants.h"
#include "pelab/v1/results.pb.h"

namespace pelab::client {

// One map a cell and variant of the ablation.
struct AblationMap {
  render::HeatMap map;
  double strongest = 0;  // the largest value; -infinity where there is none
  results::AblationMetric metric = results::AblationMetric::kAccuracyDrop;
  bool by_rank = false;
  // Of several seeds: the map of each, by head, and which head leads in each layer.
  std::vector<render::HeatMap> seeds;
  std::vector<std::string> leads;
};
std::vector<AblationMap> AblationMaps(const results::CellTable& cells,
                                      const std::vector<v1::HeadAblationRow>& rows,
                                      const results::Variants& variants,
                                      results::AblationMetric metric,
                                      results::HeadOrder order = results::HeadOrder::kByEncoding);

// The map; of several seeds also what leads, and below it the map of each seed.
std::string AblationMapText(const AblationMap& map, const render::Style& style);

// The heads of each layer along one axis: whether one of them stands out.
std::string AblationStripText(const AblationMap& map, const render::Style& style);

// What the figures and signs of these maps are, to stand below them once; empty for none.
std::string AblationNotes(const std::vector<AblationMap>& maps, const render::Style& style);

}  // namespace pelab::client
