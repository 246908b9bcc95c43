// Head ablations drawn, seeds put together. Pure functions: thread-safe.
#pragma once

#include <string>
#include <vector>

#include "client/render/plot.h"
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
};
std::vector<AblationMap> AblationMaps(const results::CellTable& cells,
                                      const std::vector<v1::HeadAblationRow>& rows,
                                      const results::Variants& variants,
                                      results::AblationMetric metric);

// The map, and below it what its signs mean.
std::string AblationMapText(const AblationMap& map, const render::Style& style);

// The heads of each layer along one axis: whether one of them stands out.
std::string AblationStripText(const AblationMap& map, const render::Style& style);

}  // namespace pelab::client
