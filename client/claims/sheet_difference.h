// The differences between two claim sheets.
#pragma once

#include <string>
#include <vector>

#include "core/claims/sheet.h"
#include "core/render/json.h"

namespace pelab::client {

// One thing that differs: a part of a claim, a whole claim, or something of the sheet itself.
struct SheetDifference {
  std::string claim;  // its id; empty: of the sheet
  std::string what;   // "by", "cells", "added", "removed", "sweep"
  std::string before;
  std::string after;
};
// In the order of the sheets. `a_sweep` and `b_sweep` are the texts of their sweeps. Pure.
std::vector<SheetDifference> DifferencesOf(const claims::Sheet& a, const std::string& a_sweep,
                                           const claims::Sheet& b, const std::string& b_sweep);

std::string DifferencesText(const std::vector<SheetDifference>& differences);
render::Json DifferencesJson(const std::vector<SheetDifference>& differences);

}  // namespace pelab::client
