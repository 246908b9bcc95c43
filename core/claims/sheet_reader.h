// Reads claim sheets. Pure function: thread-safe.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "core/claims/sheet.h"

namespace pelab::claims {

struct SheetResult {
  std::optional<Sheet> sheet;
  std::vector<experiment::Violation> violations;  // in document order; empty if and only if sheet
};

// Reads everything that can be read and reports every part that cannot, with line and column.
// Conditions and fields are checked in their form alone: binding.h checks which cells they choose.
SheetResult ReadSheet(std::string_view document);

}  // namespace pelab::claims
