// How the evidence for and against a sheet's claims grew. Pure functions: thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "core/render/json.h"
#include "pelab/v1/claims.pb.h"

namespace pelab::results {

// By the position of the claim: [[seeds, log10 of the larger of its two e-values], …], one entry
// for each round that gave it seeds. `rows` are those of all rounds, by round.
std::map<std::int64_t, render::Json> SheetHistories(const std::vector<v1::SheetClaimRow>& rows);

}  // namespace pelab::results
