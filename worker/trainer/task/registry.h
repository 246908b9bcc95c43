// The tasks that this trainer can generate. A test compares this table with the catalog.
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

// Throws TrainerError(kBadSpec) if the table does not have the job's task name and version.
std::unique_ptr<Task> MakeTask(const experiment::Job& job);

}  // namespace pelab::trainer
