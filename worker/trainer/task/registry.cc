#include "worker/trainer/task/registry.h"

#include <string>

#include "worker/trainer/protocol/error.h"

namespace pelab::trainer {

const std::vector<TaskEntry>& TaskRegistry() {
  static const auto* const table = new std::vector<TaskEntry>{
      {"distance", 1, MakeDistanceTask},
      {"counting", 1, MakeCountingTask},
  };
  return *table;
}

std::unique_ptr<Task> MakeTask(const experiment::Job& job) {
  std::string known;
  for (const TaskEntry& entry : TaskRegistry()) {
    if (entry.name == job.task && entry.version == job.task_version) return entry.make(job);
    known += (known.empty() ? "" : ", ") + std::string(entry.name) + " version " +
             std::to_string(entry.version);
  }
  throw TrainerError(ErrorKind::kBadSpec, "this trainer has no task \"" + job.task + "\" version " +
                                              std::to_string(job.task_version) +
                                              "; known: " + known);
}

}  // namespace pelab::trainer
