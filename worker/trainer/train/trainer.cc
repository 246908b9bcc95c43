#include "worker/trainer/train/trainer.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "worker/trainer/model/kernel_calls.h"
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

}  // namespace

void RequireFinite(const EpochResult& result) {
  RequireFinite(result.train_loss, "training", result.epoch);
  RequireFinite(result.test.loss, "test", result.epoch);
}

Trainer::Trainer(const spec::Job& job, Decoder* decoder, ParameterSet* parameters,
                 const DeviceData* data, std::int64_t micro_batch, bool graphs)
    : decoder_(*decoder),
      parameters_(*parameters),
      data_(*data),
      batch_size_(job.Int("train.batch_size")),
      micro_batch_(micro_batch),
      steps_per_epoch_((data->train_examples() + batch_size_ - 1) / batch_size_),
      epochs_(job.Int("train.epochs")),
      schedule_(job, steps()),
      optimizer_(job, parameters),
      sums_(parameters->device(), parameters->members()) {
  const at::Device device = parameters->device();
  if (device.is_cpu() || !HasCudaKernels()) return;
  DeviceStep at(parameters->seeds(), decoder->config(), schedule_, optimizer_.settings(), steps(),
                device);
  device_steps_.emplace(
      std::move(at), parameters->members(), batch_size_, graphs,
      [this](const at::Tensor& indices, const DeviceStep& now) {
        // The step's number is of no use here: its keys come from the device.
        Differentiate(indices, Dropout(decoder_.config(), parameters_.seeds(), 0, now.keys()));
        optimizer_.Step(now);
      });
}

std::vector<EpochResult> Trainer::RunEpoch(std::int64_t epoch) {
  const double began = Seconds();
  const at::Tensor order = data_.Order(parameters_.seeds(), epoch);
  for (std::int64_t i = 0; i < steps_per_epoch_; ++i) {
    ThrowIfStopped();
    const std::int64_t begin = i * batch_size_;
    const std::int64_t count = std::min(batch_size_, data_.train_examples() - begin);
    RunStep(order.narrow(1, begin, count), epoch * steps_per_epoch_ + i);
  }
  const std::vector<ClassifiedFigures> figures = TakeFigures();
  const std::vector<Score> scores =
      EvaluateMembers(decoder_, data_, data_.train_examples(), data_.size());
  std::vector<EpochResult> results;
  for (std::size_t m = 0; m < figures.size(); ++m) {
    EpochResult& result = results.emplace_back();
    result.epoch = epoch;
    result.learning_rate = schedule_.RateAt((epoch + 1) * steps_per_epoch_ - 1);
    result.train_loss = figures[m].mean_loss / static_cast<double>(steps_per_epoch_);
    result.train_correct = figures[m].correct;
    result.train_total = figures[m].scored;
    result.test = scores[m];
    result.seconds = Seconds() - began;
  }
  return results;
}

void Trainer::RunStep(const at::Tensor& indices, std::int64_t step) {
  if (device_steps_) return device_steps_->Run(indices, step);
  Differentiate(indices, Dropout(decoder_.config(), parameters_.seeds(), step));
  optimizer_.Step(step, schedule_.RateAt(step));
}

void Trainer::Differentiate(const at::Tensor& indices, const Dropout& dropout) {
  const std::int64_t examples = indices.size(1);
  const std::int64_t most = micro_batch_ > 0 ? std::min(micro_batch_, examples) : examples;
  // The parts' losses are divided by the whole batch's scored examples: parts may differ in theirs.
  const at::Tensor scored = sums_.CountScored(data_.ClassesAt(indices), data_.ignored_class());
  for (std::int64_t begin = 0; begin < examples; begin += most) {
    const std::int64_t count = std::min(most, examples - begin);
    const LabelledBatch part = data_.At(indices.narrow(1, begin, count));
    const Dropout part_dropout = dropout.From(begin);
    const at::Tensor logits = decoder_.Logits(part.inputs, &part_dropout);
    logits.backward(
        sums_.AddAndDifferentiate(logits.detach(), part.classes, data_.ignored_class(), scored));
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
