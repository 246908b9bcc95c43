// The sweep that a claim sheet's rounds add seeds to.
#pragma once

#include <algorithm>

#include "core/experiment/sweep.h"
#include "pelab/v1/sweeps.pb.h"

namespace pelab::client {

// Whether rounds gave the sweep its seeds, so that pelab settle repeats it. `sweep` is one of
// DataSource::Sweep, which has its overrides.
inline bool IsOfSheet(const v1::Sweep& sweep) {
  return std::any_of(
      sweep.overrides().begin(), sweep.overrides().end(), [](const v1::Override& override) {
        return override.field() == "seed" && override.value() == experiment::kNoSeeds;
      });
}

}  // namespace pelab::client
