#include "worker/trainer/train/trainer.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

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

Trainer::Trainer(const spec::Job& job, Decoder* decoder, ParameterSet* parameters,
                 const DeviceData* data)
    : job_(job),
      decoder_(*decoder),
      parameters_(*parameters),
      data_(*data),
      batch_size_(job.Int("train.batch_size")),
      steps_per_epoch_((data->train_examples() + batch_size_ - 1) / batch_size_),
      schedule_(job, steps_per_epoch_ * job.Int("train.epochs")),
      optimizer_(job, parameters) {}

EpochResult Trainer::RunEpoch(std::int64_t epoch) {
  const double began = Seconds();
  EpochResult result;
  result.epoch = epoch;
  const at::Tensor order = data_.Order(job_.seed, epoch);
  std::vector<at::Tensor> losses;  // read back once an epoch
  at::Tensor counts;               // (correct, scored)
  for (std::int64_t i = 0; i < steps_per_epoch_; ++i) {
    ThrowIfStopped();
    const std::int64_t step = epoch * steps_per_epoch_ + i;
    const std::int64_t begin = i * batch_size_;
    const LabelledBatch batch =
        data_.At(order.narrow(0, begin, std::min(batch_size_, data_.train_examples() - begin)));
    const Dropout dropout(decoder_.config(), job_.seed, step, parameters_.device());
    const at::Tensor logits = decoder_.Logits(batch.inputs, &dropout);
    const at::Tensor loss = MeanLoss(logits, batch.classes, data_.ignored_class());
    loss.backward();
    result.learning_rate = schedule_.RateAt(step);
    optimizer_.Step(step, result.learning_rate);
    losses.push_back(loss.detach());
    const at::Tensor count = CountCorrect(logits, batch.classes, data_.ignored_class());
    counts = counts.defined() ? counts + count : count;
  }
  result.train_loss = at::stack(losses).to(at::kDouble).mean().item().toDouble();
  RequireFinite(result.train_loss, "training", epoch);
  const at::Tensor host = counts.cpu();
  result.train_correct = host.data_ptr<std::int64_t>()[0];
  result.train_total = host.data_ptr<std::int64_t>()[1];
  result.test = Evaluate(decoder_, data_, data_.train_examples(), data_.size());
  RequireFinite(result.test.loss, "test", epoch);
  result.seconds = Seconds() - began;
  return result;
}

Checkpoint Trainer::Snapshot(std::int64_t epoch) {
  const auto copy = [](const at::Tensor& tensor) { return tensor.cpu().clone(); };
  return {epoch, copy(parameters_.flat()), copy(optimizer_.first_moment()),
          copy(optimizer_.second_moment())};
}

void Trainer::Restore(const Checkpoint& checkpoint) {
  const at::NoGradGuard no_grad;
  if (checkpoint.parameters.numel() != parameters_.count()) {
    throw TrainerError(ErrorKind::kIo,
                       "the checkpoint has " + std::to_string(checkpoint.parameters.numel()) +
                           " parameters, the model " + std::to_string(parameters_.count()));
  }
  at::Tensor flat = parameters_.flat();
  flat.copy_(checkpoint.parameters);
  optimizer_.first_moment().copy_(checkpoint.first_moment);
  optimizer_.second_moment().copy_(checkpoint.second_moment);
}

}  // namespace pelab::trainer
