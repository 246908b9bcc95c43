#include "worker/trainer/analysis/split_accuracy.h"

#include <algorithm>
#include <utility>

#include "core/safetensors/task_file.h"
#include "worker/trainer/task/dataset.h"
#include "worker/trainer/task/own_data.h"

namespace pelab::trainer {
namespace {

constexpr char kTest[] = "test";

Score ScoreOf(const Decoder& decoder, const DeviceData& data, std::int64_t begin, std::int64_t end,
              std::int64_t max_examples) {
  const std::int64_t last = max_examples == 0 ? end : std::min(end, begin + max_examples);
  return Evaluate(decoder, data, begin, last);
}

// Guessing is judged as if the job tested on `split`.
double ChanceOn(experiment::Job job, const experiment::OwnTask& declared,
                const experiment::OwnSplit& split) {
  for (const auto& [field, value] : experiment::FieldsOf(declared, split)) {
    job.values[field] = value;
  }
  if (split.chance_nonzero && experiment::LeavesZeroOut(job)) return *split.chance_nonzero;
  return experiment::ChanceAccuracy(job);
}

}  // namespace

SplitAccuracy ScoreSplits(const experiment::Job& job, const Decoder& decoder,
                          const DeviceData& data, std::int64_t max_examples) {
  const Score train = ScoreOf(decoder, data, 0, data.train_examples(), max_examples);
  const Score tested = ScoreOf(decoder, data, data.train_examples(), data.size(), max_examples);
  const double chance = experiment::ChanceAccuracy(job);
  if (job.task != catalog::OwnTask().name) {
    return {1, {{std::string(experiment::kTrainSplit), train, chance}, {kTest, tested, chance}}};
  }
  const TaskFile file = ReadOwnFile(job);
  SplitAccuracy result;
  for (std::size_t i = 0; i < file.declared.splits.size(); ++i) {
    const experiment::OwnSplit& split = file.declared.splits[i];
    SplitScore one = {split.name, train, ChanceOn(job, file.declared, split)};
    if (split.name == job.Choice("task.test")) {
      result.tested = i;
      one.score = tested;
    } else if (i > 0) {
      const Dataset examples = ExamplesOf(file, {i});
      const DeviceData on_device(examples, LabelSpaceOf(job, examples), data.device());
      one.score = ScoreOf(decoder, on_device, 0, on_device.size(), max_examples);
    }
    result.splits.push_back(std::move(one));
  }
  return result;
}

std::int64_t SplitAccuracyMaxExamples(const experiment::Analysis& analysis) {
  return std::get<std::int64_t>(analysis.parameters.at("split_accuracy.max_examples"));
}

}  // namespace pelab::trainer
