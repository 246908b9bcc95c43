// The data of a task whose examples come from a file (docs/own-data.md).
#pragma once

#include "worker/trainer/task/dataset.h"

namespace pelab::trainer {

// Reads the file that the job names (--files), checks all of it and compares it with the job. The
// training split comes first, then the split that the job tests on, each in the order of the file.
// Throws TrainerError: kIo if the file cannot be read, kBadSpec if it is another one or is wrong.
Dataset ReadOwnData(const experiment::Job& job);

}  // namespace pelab::trainer
