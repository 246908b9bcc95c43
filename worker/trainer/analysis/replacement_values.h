// The replacement values that take the place of an ablated head's output.
//
//   zero      zeros
//   mean      the head's mean at the same position over the training examples that have a token
//             (not padding) there; if none has one, over all training examples
//   resample  the head's output at the same position of another example, as the intact model
//             computes it there, even if that position is padding
//
// The donor of example i of the data set is another example of the test set. The candidates are all
// test examples except i, in order. The donor is the candidate of index
// CounterRandom(task.data_seed, "ablation/donor", i).Below(number of candidates).
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
// Throws TrainerError(kBadSpec) if the name is not zero, mean or resample.
Method MethodFrom(const std::string& name);
// Throws TrainerError(kBadSpec) if the job's data have too few examples for the method.
void CheckMethod(Method method, const experiment::Job& job);

// The mean by position of a quantity that a model computes for each example. It is taken over the
// examples that have a token (not padding) at the position; if no example has one, over all
// examples.
class PositionMean {
 public:
  // Adds `values` (B, T', …) for the last T' positions of `batch`.
  void Add(const at::Tensor& values, const Batch& batch);
  // (1, T', …), in the type of the values.
  at::Tensor Finish() const;

 private:
  std::int64_t examples_ = 0;
  at::ScalarType dtype_ = at::kFloat;
  at::Tensor all_;  // (T', …), double: sums over all examples
  // (T', …), double: sums over examples with a token; undefined if nothing is padded
  at::Tensor tokens_;
  at::Tensor filled_;  // (T'), double: number of examples with a token there
};

// The mean outputs of the heads over training examples [0, examples): for each layer (1, T', D).
// Throws Stopped.
Replacement MeanHeads(const Decoder& decoder, const DeviceData& data, std::int64_t examples);

// Throws TrainerError(kBadSpec) if a test set of `test_examples` is too small to give each example
// another one as its donor.
void RequireDonors(std::int64_t test_examples);

// The donors of `indices` ((B), 64-bit), as indices into the data set, in the same order and on the
// same device. Throws like RequireDonors.
at::Tensor Donors(const DeviceData& data, std::int64_t data_seed, const at::Tensor& indices);

// Runs the intact model on the donors of examples [begin, end).
Trace TraceDonors(const Decoder& decoder, const DeviceData& data, std::int64_t data_seed,
                  std::int64_t begin, std::int64_t end);

// Uses the outputs of the heads in a pass as replacement values.
Replacement HeadsAsReplacement(const Trace& trace);

// The number of training examples for a mean: at most `max_examples`, 0 for all.
std::int64_t MeanExamples(const DeviceData& data, std::int64_t max_examples);

// Supplies the replacement values for each batch. Use it from one thread. The constructor's
// arguments must outlive it.
class ReplacementValues {
 public:
  // `max_examples` limits the training examples over which a mean is taken; 0: all. Throws Stopped.
  ReplacementValues(const Decoder& decoder, const DeviceData& data, Method method,
                    std::int64_t data_seed, std::int64_t max_examples);

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
