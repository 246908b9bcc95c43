// The evidence of a claim in documents (docs/formats.md, "Evidence and verdicts"). Pure functions:
// thread-safe.
#pragma once

#include "core/claims/binding.h"
#include "core/claims/cell_labels.h"
#include "core/claims/evidence.h"
#include "core/render/json.h"

namespace pelab::claims {

// {"pe", "task", "protocol", "settings": {field: value}} of a cell of a sheet.
render::Json CellJson(const experiment::Cell& cell, const CellLabels::Settings& settings);

// The members `sides` and `statistics` of a claim.
render::Json SidesJson(const Evidence& evidence);
render::Json StatisticsJson(const BoundSheet& sheet, const CellLabels& labels,
                            const BoundClaim& claim, const Evidence& evidence);

}  // namespace pelab::claims
