// Sheets that the tests of core/claims share.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "core/base/strings.h"
#include "core/claims/binding.h"
#include "core/claims/sheet_reader.h"

namespace pelab::claims {

// The sheet of these claims, which are the items of a YAML list indented by two.
inline Sheet SheetOf(const std::string& claims) {
  const SheetResult read = ReadSheet(Concat("name: s\nsweep: t.yaml\nclaims:\n", claims));
  for (const auto& violation : read.violations) ADD_FAILURE() << Format(violation, "s.yaml");
  return read.sheet.value_or(Sheet());
}
inline BoundSheet Bound(const std::string& claims, const std::string& sweep) {
  const Sheet sheet = SheetOf(claims);
  BindResult result = Bind(sheet, *ParseSweepOf(sheet, sweep).sweep);
  for (const auto& violation : result.violations) ADD_FAILURE() << Format(violation, "s.yaml");
  return result.bound.value_or(BoundSheet());
}

}  // namespace pelab::claims
