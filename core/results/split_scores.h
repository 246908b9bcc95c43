// The results of the analysis split_accuracy: the accuracy on each split of a job's data. Pure
// functions: thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "pelab/v1/results.pb.h"

namespace pelab::results {

struct SplitScore {
  std::string name;
  std::int64_t total = 0;  // scored targets, more than 0
  std::int64_t correct = 0;
  double chance = 0;  // the accuracy of guessing on this split

  double accuracy() const { return static_cast<double>(correct) / static_cast<double>(total); }
};

// The scores of one analysis, in the order of the file. Splits without a scored target are left
// out. Empty if the result is not one of split_accuracy.
std::vector<SplitScore> SplitScoresOf(const v1::AnalysisRow& row);

struct SplitScores {
  std::vector<std::string> names;  // of all splits, as they come
  // By job and split. If a job has several analyses, the one that scored most targets counts; of
  // equals, the newest.
  std::unordered_map<std::int64_t, std::map<std::string, SplitScore>> of_jobs;

  const SplitScore* Find(std::int64_t job, const std::string& split) const;
};
SplitScores CollectSplitScores(const std::vector<v1::AnalysisRow>& rows);

}  // namespace pelab::results
