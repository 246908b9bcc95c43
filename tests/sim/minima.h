// How often a thousand histories must do what they are meant to try. A change of the simulation
// that leaves something out would otherwise go unnoticed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/sim/history.h"

namespace pelab::sim {

// A sentence for each thing that so many histories did too rarely. Fewer than 500 histories may
// miss anything.
std::vector<std::string> TooRare(const HistoryResult& sum, std::uint64_t histories);

}  // namespace pelab::sim
