// The data of a task whose examples come from a file (docs/own-data.md).
#pragma once

#include <cstddef>
#include <vector>

#include "core/safetensors/task_file.h"
#include "worker/trainer/task/dataset.h"

namespace pelab::trainer {

// Reads the file that the job names from the folder of --files, checks all of it and compares it
// with the job. Throws TrainerError: kIo if the file cannot be read, kBadSpec if its SHA-256 or its
// declaration is not the job's, or if its content breaks the rules of docs/own-data.md.
TaskFile ReadOwnFile(const experiment::Job& job);

// The examples of these splits (indices in declared.splits), split by split, each in the order of
// the file. Those of split 0 are the training examples.
Dataset ExamplesOf(const TaskFile& file, const std::vector<std::size_t>& splits);

// The job's data: the training split, then the split that the job tests on. Throws as ReadOwnFile.
Dataset ReadOwnData(const experiment::Job& job);

}  // namespace pelab::trainer
