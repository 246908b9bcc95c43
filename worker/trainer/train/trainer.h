// The training loop, of one job or of several members (model/members.h) at once: epochs of shuffled batches, AdamW on a schedule,
// evaluation after each epoch, checkpoints at epoch boundaries.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/experiment/job.h"
#include "worker/trainer/model/decoder.h"
#include "worker/trainer/parameters/parameters.h"
#include "worker/trainer/train/adamw.h"
#include "worker/trainer/train/batches.h"
#include "worker/trainer/train/checkpoint.h"
#include "worker/trainer/train/classified_sums.h"
#include "worker/trainer/train/device_steps.h"
#include "worker/trainer/train/evaluate.h"
#include "worker/trainer/train/schedule.h"
#include "worker/trainer/train/sections.h"

namespace pelab::trainer {

struct EpochResult {
  std::int64_t epoch = 0;
  // Running figures over the epoch with dropout on: the unweighted mean of the batches' mean losses, and counts.
  double train_loss = 0;
  std::int64_t train_correct = 0;
  std::int64_t train_total = 0;
  Score test;
  double learning_rate = 0;  // of the last step
  double seconds = 0;        // of all members together
};

// Throws TrainerError(kNonFiniteLoss) where a loss of it is no finite number.
void RequireFinite(const EpochResult& result);

// How steps are computed: none of it changes results by more than rounding.
struct StepWays {
  // Above 0: a batch goes through the model in parts of so many examples, or as many more as they are shorter than the data's
  // length, whose gradients add up to the batch's, in less memory.
  std::int64_t micro_batch = 0;
  // On CUDA steps are launched as a graph, with the same bits.
  bool graphs = true;
  // Padding that nobody reads is left out (sections.h). False: for comparisons.
  bool leave_padding_out = true;
};

class Trainer {
 public:
  // All of them outlive it; `parameters` is materialised with the members' seeds, `data` theirs and on the same device;
  // `job` is one of theirs.
  Trainer(const experiment::Job& job, Decoder* decoder, ParameterSet* parameters,
          const DeviceData* data, const StepWays& ways = {});
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  std::int64_t steps_per_epoch() const { return batching_.batches(); }
  std::int64_t steps() const { return steps_per_epoch() * epochs_; }

  EpochBatches BatchesOf(std::int64_t epoch) const { return batching_.Of(epoch); }
  // Step number `step` from the start of the training, with batch `batch` of an epoch: gradient and update. Does not
  // synchronise.
  void RunStep(const EpochBatches& batches, std::int64_t batch, std::int64_t step);
  // What the steps since the last call have added up. Synchronises.
  std::vector<ClassifiedFigures> TakeFigures() { return sums_.Take(); }

  // One epoch and its evaluation, of each member. Throws Stopped between batches when a stop was asked for.
  std::vector<EpochResult> RunEpoch(std::int64_t epoch);

  // A member's state now, as the start of `epoch`, copied to the CPU; and back.
  Checkpoint Snapshot(std::int64_t epoch, std::int64_t member = 0);
  void Restore(const Checkpoint& checkpoint, std::int64_t member = 0);

 private:
  // Adds the batch's gradient to the parameters', part by part.
  void Differentiate(const at::Tensor& indices, const Sections& sections, const Dropout& dropout);

  Decoder& decoder_;
  ParameterSet& parameters_;
  const DeviceData& data_;
  std::int64_t micro_batch_;
  Batching batching_;
  std::int64_t epochs_;
  Schedule schedule_;
  AdamW optimizer_;
  ClassifiedSums sums_;
  std::optional<DeviceSteps> device_steps_;  // on CUDA
};

}  // namespace pelab::trainer
