// Accuracy on every split of a job's data. A job is tested on one split; data of one's own
// (docs/own-data.md) may have others, such as longer sequences.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/experiment/analysis.h"
#include "core/experiment/job.h"
#include "worker/trainer/model/decoder.h"
#include "worker/trainer/train/batches.h"
#include "worker/trainer/train/evaluate.h"

namespace pelab::trainer {

struct SplitScore {
  std::string name;
  Score score;
  double chance = 0;  // the accuracy of guessing on this split
};

struct SplitAccuracy {
  std::size_t tested = 0;          // the split that the job tests on
  std::vector<SplitScore> splits;  // "train" first, then the others in the order of the file
};

// Uses the first `max_examples` of each split; 0 for all. Reads the file of own data again: throws
// as ReadOwnFile, and Stopped if a stop was requested.
SplitAccuracy ScoreSplits(const experiment::Job& job, const Decoder& decoder,
                          const DeviceData& data, std::int64_t max_examples);

std::int64_t SplitAccuracyMaxExamples(const experiment::Analysis& analysis);

}  // namespace pelab::trainer
