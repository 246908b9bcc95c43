// The flags that commands about analyses share.
#pragma once

#include <string>

#include "core/results/variants.h"

namespace CLI {
class App;
}  // namespace CLI

namespace pelab::client {

// The positional JOB|SWEEP and --sweep (see FindTarget in show.h).
void AddTarget(CLI::App* app, std::string& target, std::string& sweep);

// --method, --hygiene, --data and --target: which of several stored ablations.
void AddChoice(CLI::App* app, results::AblationChoice& choice);

}  // namespace pelab::client
