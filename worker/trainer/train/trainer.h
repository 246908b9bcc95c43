// The training loop for one job or for several members (parameters/members.h) at once: epochs of
// shuffled batches, AdamW with a learning-rate schedule, evaluation after each epoch. Its state can
// be saved and restored at epoch boundaries.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
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
  // Measured during the epoch, with dropout on: the unweighted mean of the batches' mean losses,
  // and counts.
  double train_loss = 0;
  std::int64_t train_correct = 0;
  std::int64_t train_total = 0;
  Score train_eval;  // of a sample of the training examples, after the epoch and without dropout
  Score test;
  double learning_rate = 0;  // of the last step
  double seconds = 0;        // of all members together
};

// The number of training examples that are evaluated after an epoch: the first of the training set.
std::int64_t EvaluatedTrainingExamples(std::int64_t train_examples);

// The members of the event `epoch` (docs/formats.md).
nlohmann::ordered_json ToJson(const EpochResult& result);

// Throws TrainerError(kNonFiniteLoss) if the training or test loss is not finite.
void RequireFinite(const EpochResult& result);

// Options for computing steps. None of them changes results by more than rounding.
struct StepOptions {
  // Above 0: a batch goes through the model in parts of this many examples of full length, or of
  // more shorter examples with as many positions. The gradients of the parts add up to that of the
  // batch. Saves memory.
  std::int64_t micro_batch = 0;
  // On CUDA, launch steps as a graph. The bits are the same.
  bool graphs = true;
  // Leave out padding that the model does not read (sections.h). False is for comparisons.
  bool leave_padding_out = true;
};

class Trainer {
 public:
  // `decoder`, `parameters` and `data` must outlive the trainer. `parameters` must be materialized
  // with the members' seeds. `data` is the members' data, on the same device. `job` is the job of
  // one of them.
  Trainer(const experiment::Job& job, Decoder* decoder, ParameterSet* parameters,
          const DeviceData* data, const StepOptions& ways = {});
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  std::int64_t steps_per_epoch() const { return batching_.batches(); }
  std::int64_t steps() const { return steps_per_epoch() * epochs_; }

  EpochBatches BatchesOf(std::int64_t epoch) const { return batching_.Of(epoch); }
  // Runs step number `step`, counted from the start of the training, with batch `batch` of an
  // epoch: gradient and update. Does not synchronize (except in the first steps on CUDA with
  // graphs).
  void RunStep(const EpochBatches& batches, std::int64_t batch, std::int64_t step);
  // Returns the sums over the steps since the last call. Synchronizes.
  std::vector<ClassifiedFigures> TakeFigures() { return sums_.Take(); }

  // Runs one epoch and its evaluation; one result per member. Throws Stopped between batches if a
  // stop was requested.
  std::vector<EpochResult> RunEpoch(std::int64_t epoch);

  // Snapshot copies a member's current state to the CPU, as the start of `epoch`. Restore copies it
  // back; throws TrainerError(kIo) if the number of parameters differs.
  Checkpoint Snapshot(std::int64_t epoch, std::int64_t member = 0);
  void Restore(const Checkpoint& checkpoint, std::int64_t member = 0);

 private:
  // Adds the gradient of the batch to the parameters' gradients, part by part.
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
