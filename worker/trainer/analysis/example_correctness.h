// Records which test examples the model predicts correctly, so that two models can be compared
// example by example.
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
  // One bit per example in the order of the test set (per position of each example, if targets are
  // by position), whether scored or not: 1 if the target is scored and right. Written as
  // hexadecimal digits. The first one is the highest bit of the first digit; the last digit is
  // filled up with zeros.
  std::string right;
};

// Uses the first `max_examples` of the test set; 0 for all. Throws Stopped between chunks if a stop
// was requested.
ExampleCorrectness JudgeExamples(const Decoder& decoder, const DeviceData& data,
                                 std::int64_t max_examples);

std::int64_t ExampleCorrectnessMaxExamples(const experiment::Analysis& analysis);

}  // namespace pelab::trainer
