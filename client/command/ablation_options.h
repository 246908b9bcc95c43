// Flags that the commands about analyses share.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/base/strings.h"
#include "core/results/variants.h"

namespace CLI {
class App;
}  // namespace CLI

namespace pelab::client {

// The positional JOB|SWEEP and --sweep (see FindTarget in show.h).
void AddTarget(CLI::App* app, std::string& target, std::string& sweep);

// Adds --method, --hygiene, --data and --target, which choose among several stored ablations.
void AddChoice(CLI::App* app, results::AblationChoice& choice);

// Keeps the rows that the choice selects; an error names the flag.
template <typename Row>
absl::Status ChooseByFlags(const results::AblationChoice& choice, std::vector<Row>& rows) {
  absl::Status status = results::Choose(choice, rows);
  if (status.ok()) return status;
  return {status.code(), Concat("--", std::string(status.message()))};
}

}  // namespace pelab::client
