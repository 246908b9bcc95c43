// A comparison as a table. A pure function: thread-safe.
#pragma once

#include <string>

#include "client/terminal/style.h"
#include "core/results/comparison.h"

namespace pelab::client {

// One line per group: the means of both sides, their difference with its interval, and the paired
// test. `name_a` and `name_b` name the sides, for example "pe=rope".
std::string ComparisonText(const results::Comparison& comparison, const std::string& name_a,
                           const std::string& name_b, const render::Style& style);

}  // namespace pelab::client
