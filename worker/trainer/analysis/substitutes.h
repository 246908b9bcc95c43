// What an ablated head's output becomes.
//
//   zero      nothing
//   mean      its mean over training examples at the same position, over those whose token there is no pad; where no
//             training example has a token, over all of them
//   resample  its value in another example at the same position, as the intact model computes it there, also where that
//             example is padded
//
// The donor of example i of the data set is another example of the test set: of the n test examples but i itself, the one
// of rank CounterRandom(task.data_seed, "ablation/donor", i).Below(number of candidates).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "core/experiment/job.h"
#include "worker/trainer/analysis/fan_out.h"
#include "worker/trainer/analysis/passes.h"
#include "worker/trainer/model/decoder.h"
#include "worker/trainer/train/batches.h"

namespace pelab::trainer {

enum class Method { kZero, kMean, kResample };
// Throws TrainerError(kBadSpec) for a name that is none of zero, mean, resample.
Method MethodFrom(const std::string& name);
// Throws TrainerError(kBadSpec) for a method that the job's data have too few examples for.
void CheckMethod(Method method, const experiment::Job& job);

// The mean by position of what a model computes for each example: over the examples whose token there is no pad; where no
// example has a token, over all.
class PositionMean {
 public:
  // (B, T', …), of the last T' positions of `batch`.
  void Add(const at::Tensor& values, const Batch& batch);
  // (1, T', …), in the type of the values.
  at::Tensor Finish() const;

 private:
  std::int64_t examples_ = 0;
  at::ScalarType dtype_ = at::kFloat;
  at::Tensor all_;  // (T', …), double: sums over all examples
  at::Tensor
      tokens_;  // (T', …), double: over those with a token; undefined where nothing is padded
  at::Tensor filled_;  // (T'), double: examples with a token there
};

// The heads' means over training examples [0, examples): for each layer (1, T', D). Throws Stopped.
Replacement MeanHeads(const Decoder& decoder, const DeviceData& data, std::int64_t examples);

// Throws TrainerError(kBadSpec) where a test set of so many examples cannot give each of them another.
void RequireDonors(std::int64_t test_examples);

// The data set's indices of the donors of `indices` ((B), 64-bit), in the same order, on the same device. Throws as
// RequireDonors.
at::Tensor Donors(const DeviceData& data, std::int64_t data_seed, const at::Tensor& indices);

// The donors of examples [begin, end), and what the intact model computes for them.
Trace TraceDonors(const Decoder& decoder, const DeviceData& data, std::int64_t data_seed,
                  std::int64_t begin, std::int64_t end);

// The heads' outputs of a pass, to take the place of others'.
Replacement HeadsAsReplacement(const Trace& trace);

// How many training examples a mean is taken over: `max_examples` of them, 0 for all.
std::int64_t MeanExamples(const DeviceData& data, std::int64_t max_examples);

// Gives each batch what takes the place of its heads' outputs. Used from one thread; what it is made from outlives it.
class Substitutes {
 public:
  // `max_examples` bounds the training examples that a mean is taken over; 0: all. Throws Stopped.
  Substitutes(const Decoder& decoder, const DeviceData& data, Method method, std::int64_t data_seed,
              std::int64_t max_examples);

  // For examples [begin, end) of the data set.
  Replacement For(std::int64_t begin, std::int64_t end) const;

 private:
  const Decoder& decoder_;
  const DeviceData& data_;
  Method method_;
  std::int64_t data_seed_;
  Replacement mean_;
};

}  // namespace pelab::trainer
