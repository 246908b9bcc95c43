// Head ablation figures for papers: one map of layers by heads per group and variant, all on one
// color scale. Pure functions: thread-safe.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/figure/canvas.h"
#include "client/terminal/plot.h"

namespace pelab::client {

struct HeatFigure {
  std::string title;
  std::string unit;  // of the displayed values: "accuracy lost, in points"
  // The maps of `pelab ablation`. NaN is an entry that does not exist; muted entries are drawn as
  // 0.
  std::vector<render::HeatMap> maps;
};

absl::StatusOr<std::string> DrawHeatMaps(const HeatFigure& figure, Vector form);

}  // namespace pelab::client
