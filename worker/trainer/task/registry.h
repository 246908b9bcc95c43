// The tasks that this trainer can generate. A test holds the table against the catalog.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "core/experiment/job.h"
#include "worker/trainer/task/task.h"

namespace pelab::trainer {

struct TaskEntry {
  std::string_view name;
  int version;
  std::unique_ptr<Task> (*make)(const experiment::Job&);
};

const std::vector<TaskEntry>& TaskRegistry();

// Throws TrainerError(kBadSpec) for a name or version that is not in the table.
std::unique_ptr<Task> MakeTask(const experiment::Job& job);

}  // namespace pelab::trainer
