// The tasks that this trainer can generate. A test holds the table against the catalog.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "core/spec/canonical.h"
#include "worker/trainer/task/task.h"

namespace pelab::trainer {

struct TaskEntry {
  std::string_view name;
  int version;
  std::unique_ptr<Task> (*make)(const spec::Job&);
};

const std::vector<TaskEntry>& TaskRegistry();

// Throws TrainerError(kBadSpec) for a name or version that is not in the table.
std::unique_ptr<Task> MakeTask(const spec::Job& job);

}  // namespace pelab::trainer
