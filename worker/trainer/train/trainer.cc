#include "worker/trainer/train/trainer.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "worker/trainer/limits.h"
#include "worker/trainer/operations/kernel_calls.h"
#include "worker/trainer/protocol/error.h"
#include "worker/trainer/protocol/stop.h"

namespace pelab::trainer {
namespace {

double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void RequireFinite(double loss, const char* which, std::int64_t epoch) {
  if (std::isfinite(loss)) return;
  throw TrainerError(ErrorKind::kNonFiniteLoss,
                     std::string("the ") + which + " loss of epoch " + std::to_string(epoch) +
                         " is " + (std::isnan(loss) ? "not a number" : "infinite"));
}

bool HasDeviceSteps(const ParameterSet& parameters) {
  return !parameters.device().is_cpu() && HasCudaKernels();
}

}  // namespace

std::int64_t EvaluatedTrainingExamples(std::int64_t train_examples) {
  return std::min(train_examples, std::clamp(train_examples / 10, limits::kLeastFitExamples,
                                             limits::kMostFitExamples));
}

nlohmann::ordered_json ToJson(const EpochResult& result) {
  nlohmann::ordered_json json = {{"epoch", result.epoch},
                                 {"train_loss", result.train_loss},
                                 {"train_correct", result.train_correct},
                                 {"train_total", result.train_total},
                                 {"test_loss", result.test.loss},
                                 {"test_correct", result.test.correct},
                                 {"test_total", result.test.total},
                                 {"learning_rate", result.learning_rate},
                                 {"seconds", result.seconds}};
  if (result.train_eval.total > 0) {  // some tasks leave examples unscored, maybe all of a sample
    json["train_eval_correct"] = result.train_eval.correct;
    json["train_eval_total"] = result.train_eval.total;
  }
  return json;
}

void RequireFinite(const EpochResult& result) {
  RequireFinite(result.train_loss, "training", result.epoch);
  RequireFinite(result.test.loss, "test", result.epoch);
}

Trainer::Trainer(const experiment::Job& job, Decoder* decoder, ParameterSet* parameters,
                 const DeviceData* data, const StepOptions& ways)
    : decoder_(*decoder),
      parameters_(*parameters),
      data_(*data),
      micro_batch_(ways.micro_batch),
      batching_(decoder->config(), data, parameters->seeds(), job.Int("train.batch_size"),
                !ways.leave_padding_out, HasDeviceSteps(*parameters) ? job.Int("train.epochs") : 0),
      epochs_(job.Int("train.epochs")),
      schedule_(job, steps()),
      optimizer_(job, parameters),
      sums_(parameters->device(), parameters->members()) {
  if (!HasDeviceSteps(*parameters)) return;
  DeviceStep at(parameters->seeds(), decoder->config(), schedule_, optimizer_.settings(), steps(),
                parameters->device());
  device_steps_.emplace(
      std::move(at), parameters->members(), job.Int("train.batch_size"), ways.graphs,
      [this](const at::Tensor& indices, const Sections& sections, const DeviceStep& now) {
        // The step number (0) is not used here, because the keys come from the device.
        Differentiate(indices, sections,
                      Dropout(decoder_.config(), parameters_.seeds(), 0, now.keys()));
        optimizer_.Step(now);
      });
}

std::vector<EpochResult> Trainer::RunEpoch(std::int64_t epoch) {
  const double began = Seconds();
  const EpochBatches batches = BatchesOf(epoch);
  const std::int64_t steps = steps_per_epoch();
  for (std::int64_t i = 0; i < steps; ++i) {
    ThrowIfStopped();
    RunStep(batches, i, epoch * steps + i);
  }
  const std::vector<ClassifiedFigures> figures = TakeFigures();
  const std::vector<Score> fits =
      EvaluateMembers(decoder_, data_, 0, EvaluatedTrainingExamples(data_.train_examples()));
  const std::vector<Score> scores =
      EvaluateMembers(decoder_, data_, data_.train_examples(), data_.size());
  std::vector<EpochResult> results;
  for (std::size_t m = 0; m < figures.size(); ++m) {
    EpochResult& result = results.emplace_back();
    result.epoch = epoch;
    result.learning_rate = schedule_.RateAt((epoch + 1) * steps - 1);
    result.train_loss = figures[m].mean_loss / static_cast<double>(steps);
    result.train_correct = figures[m].correct;
    result.train_total = figures[m].scored;
    result.train_eval = fits[m];
    result.test = scores[m];
    result.seconds = Seconds() - began;
  }
  return results;
}

void Trainer::RunStep(const EpochBatches& batches, std::int64_t batch, std::int64_t step) {
  const at::Tensor indices = batches.Batch(batch);
  const Sections& sections = batches.sections[batch];
  if (device_steps_) return device_steps_->Run(indices, sections, step);
  Differentiate(indices, sections, Dropout(decoder_.config(), parameters_.seeds(), step));
  optimizer_.Step(step, schedule_.RateAt(step));
}

void Trainer::Differentiate(const at::Tensor& indices, const Sections& sections,
                            const Dropout& dropout) {
  // The loss of each part is divided by the number of scored examples in the whole batch, because
  // parts may have different numbers.
  const at::Tensor scored = sums_.CountScored(data_.ClassesAt(indices), data_.ignored_class());
  for (const Section& part : InParts(sections, micro_batch_, data_.length())) {
    const LabeledBatch batch = data_.At(indices.narrow(1, part.begin, part.count), part.positions);
    const Dropout part_dropout = dropout.From(part.begin).Trimmed(part.positions, data_.length());
    const at::Tensor logits = decoder_.Logits(batch.inputs, &part_dropout);
    logits.backward(
        sums_.AddAndDifferentiate(logits.detach(), batch.classes, data_.ignored_class(), scored));
  }
}

Checkpoint Trainer::Snapshot(std::int64_t epoch, std::int64_t member) {
  const auto copy = [&](const at::Tensor& tensor) {
    return parameters_.TakeMember(tensor, member).cpu();
  };
  return {epoch, copy(parameters_.flat()), copy(optimizer_.first_moment()),
          copy(optimizer_.second_moment())};
}

void Trainer::Restore(const Checkpoint& checkpoint, std::int64_t member) {
  if (checkpoint.parameters.numel() != parameters_.count()) {
    throw TrainerError(ErrorKind::kIo,
                       "the checkpoint has " + std::to_string(checkpoint.parameters.numel()) +
                           " parameters, the model " + std::to_string(parameters_.count()));
  }
  parameters_.PutMember(checkpoint.parameters, member, parameters_.flat());
  parameters_.Round();
  parameters_.PutMember(checkpoint.first_moment, member, optimizer_.first_moment());
  parameters_.PutMember(checkpoint.second_moment, member, optimizer_.second_moment());
}

}  // namespace pelab::trainer
