// The training loop, of one job or of several members (model/members.h) at once: epochs of shuffled batches, AdamW on a schedule, evaluation after each epoch, checkpoints at epoch
// boundaries.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/spec/canonical.h"
#include "worker/trainer/model/decoder.h"
#include "worker/trainer/model/parameters.h"
#include "worker/trainer/train/adamw.h"
#include "worker/trainer/train/batches.h"
#include "worker/trainer/train/checkpoint.h"
#include "worker/trainer/train/classified_sums.h"
#include "worker/trainer/train/device_steps.h"
#include "worker/trainer/train/evaluate.h"
#include "worker/trainer/train/schedule.h"

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

class Trainer {
 public:
  // All of them outlive it; `parameters` is materialised with the members' seeds, `data` theirs and on the same device;
  // `job` is one of theirs. With
  // `micro_batch` above 0 a batch goes through the model in parts of so many examples whose
  // gradients add up to the batch's: the same step within rounding, in less memory. `graphs`: on
  // CUDA steps are launched as a graph, with the same results.
  Trainer(const spec::Job& job, Decoder* decoder, ParameterSet* parameters, const DeviceData* data,
          std::int64_t micro_batch = 0, bool graphs = true);
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  std::int64_t steps_per_epoch() const { return steps_per_epoch_; }
  std::int64_t steps() const { return steps_per_epoch_ * epochs_; }

  // Step number `step` from the start of the training, with the examples at `indices` ((members, B), 64-bit, on the device):
  // gradient and update. Does not synchronise.
  void RunStep(const at::Tensor& indices, std::int64_t step);
  // What the steps since the last call have added up. Synchronises.
  std::vector<ClassifiedFigures> TakeFigures() { return sums_.Take(); }

  // One epoch and its evaluation, of each member. Throws Stopped between batches when a stop was asked for.
  std::vector<EpochResult> RunEpoch(std::int64_t epoch);

  // A member's state now, as the start of `epoch`, copied to the CPU; and back.
  Checkpoint Snapshot(std::int64_t epoch, std::int64_t member = 0);
  void Restore(const Checkpoint& checkpoint, std::int64_t member = 0);

 private:
  // Adds the batch's gradient to the parameters', part by part.
  void Differentiate(const at::Tensor& indices, const Dropout& dropout);

  Decoder& decoder_;
  ParameterSet& parameters_;
  const DeviceData& data_;
  std::int64_t batch_size_;
  std::int64_t micro_batch_;
  std::int64_t steps_per_epoch_;
  std::int64_t epochs_;
  Schedule schedule_;
  AdamW optimizer_;
  ClassifiedSums sums_;
  std::optional<DeviceSteps> device_steps_;  // on CUDA
};

}  // namespace pelab::trainer
