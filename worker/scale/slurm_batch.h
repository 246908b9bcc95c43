// Slurm as a BatchSystem, by sbatch, squeue and scancel.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/scale/scaler.h"

namespace pelab::scale {

// Parses the output of squeue in this program's format, "ID|STATE|REASON|COMMENT" a line. Lines of
// other coordinators' allocations are left out: their comment is another one.
std::map<std::string, std::vector<Sighting>> ParseSqueue(const std::string& output,
                                                         const std::string& tag);

// The script of an allocation, which is given to sbatch. `span` is in the worker's environment.
std::string ScriptOf(const Queue& queue, const TraceContext& span);

// The arguments of sbatch, without the program itself.
std::vector<std::string> SbatchArguments(const Queue& queue, const std::string& tag);

// `tag` tells this coordinator's allocations from those of others. NOT_FOUND if a program of Slurm
// is missing.
absl::StatusOr<std::unique_ptr<BatchSystem>> MakeSlurm(const std::string& tag);

}  // namespace pelab::scale
