// Head ablations for a paper: a map of layers by heads each, all on one scale. Pure functions:
// thread-safe.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/figure/canvas.h"
#include "client/terminal/plot.h"

namespace pelab::client {

struct HeatFigure {
  std::string title;
  std::string unit;  // of what is shown: "accuracy lost, in points"
  // As pelab ablation draws them: NaN is an entry that does not exist; what is muted is taken for 0.
  std::vector<render::HeatMap> maps;
};

absl::StatusOr<std::string> DrawHeatMaps(const HeatFigure& figure, Vector form);

}  // namespace pelab::client
