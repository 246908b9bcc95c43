// The verdicts of a claim sheet, as a table, JSON and CSV. Thread-safe, as the context is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/claims/judged_sheet.h"
#include "client/figure/paper_table.h"
#include "client/options/options.h"
#include "client/terminal/style.h"
#include "core/render/json.h"

namespace pelab::client {

std::string VerdictsText(const JudgedSheet& judged, const render::Style& style);
// {"sheet", "sha256", "false_discovery_rate", "rests_on", "registered" (null if it is not),
// "claims"}: docs/formats.md.
render::Json VerdictsJson(const JudgedSheet& judged);
std::vector<std::string> VerdictColumns();
render::Json VerdictRows(const JudgedSheet& judged);  // for CSV: without the nested members

// For papers: the claims in words, their verdicts and evidence, with notes about the sheet.
PaperTable VerdictsPaper(const JudgedSheet& judged);

// Writes the verdicts in the form that --output asks for.
void PutVerdicts(const Context& context, const JudgedSheet& judged);

}  // namespace pelab::client
