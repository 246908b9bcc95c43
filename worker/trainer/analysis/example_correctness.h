// Which test examples the model has right: what two models are compared by, example by example.
#pragma once

#include <cstdint>
#include <string>

#include "core/experiment/analysis.h"
#include "worker/trainer/analysis/paired.h"
#include "worker/trainer/model/decoder.h"
#include "worker/trainer/train/batches.h"

namespace pelab::trainer {

struct ExampleCorrectness {
  IntactScore intact;
  // A bit an example in the order of the test set, scored or not: 1 where it is scored and right. Hexadecimal digits,
  // the first example in the highest bit of the first digit, the last digit filled up with zeros.
  std::string right;
};

// Over the first `max_examples` of the test set; 0 for all.
ExampleCorrectness JudgeExamples(const Decoder& decoder, const DeviceData& data,
                                 std::int64_t max_examples);

std::int64_t ExampleCorrectnessMaxExamples(const experiment::Analysis& analysis);

}  // namespace pelab::trainer
