// The sweep that a claim sheet's rounds add seeds to.
#pragma once

#include <algorithm>

#include "core/experiment/sweep.h"
#include "pelab/v1/sweeps.pb.h"

namespace pelab::client {

// Whether the rounds of a sheet gave the sweep its seeds, so that `pelab settle` is the command
// that repeats it. `sweep` must have its overrides, as the answer of DataSource::Sweep has.
inline bool IsOfSheet(const v1::Sweep& sweep) {
  return std::any_of(
      sweep.overrides().begin(), sweep.overrides().end(), [](const v1::Override& override) {
        return override.field() == "seed" && override.value() == experiment::kNoSeeds;
      });
}

}  // namespace pelab::client
