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
                 const DeviceData* data, std::int64_t micro_batch)
    : job_(job),
      decoder_(*decoder),
      parameters_(*parameters),
      data_(*data),
      batch_size_(job.Int("train.batch_size")),
      micro_batch_(micro_batch),
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
    const at::Tensor indices =
        order.narrow(0, begin, std::min(batch_size_, data_.train_examples() - begin));
    const BatchFigures figures = RunStep(indices, step);
    result.learning_rate = schedule_.RateAt(step);
    losses.push_back(figures.loss);
    counts = counts.defined() ? counts + figures.counts : figures.counts;
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

Trainer::BatchFigures Trainer::RunStep(const at::Tensor& indices, std::int64_t step) {
  const Dropout dropout(decoder_.config(), job_.seed, step, parameters_.device());
  BatchFigures figures = Backward(indices, dropout);
  optimizer_.Step(step, schedule_.RateAt(step));
  return figures;
}

Trainer::BatchFigures Trainer::Backward(const at::Tensor& indices, const Dropout& dropout) {
  if (micro_batch_ > 0 && micro_batch_ < indices.size(0)) return BackwardInParts(indices, dropout);
  const LabelledBatch batch = data_.At(indices);
  const at::Tensor logits = decoder_.Logits(batch.inputs, &dropout);
  const at::Tensor loss = MeanLoss(logits, batch.classes, data_.ignored_class());
  loss.backward();
  return {loss.detach(), CountCorrect(logits, batch.classes, data_.ignored_class())};
}

Trainer::BatchFigures Trainer::BackwardInParts(const at::Tensor& indices, const Dropout& dropout) {
  // The parts' losses are divided by the whole batch's scored examples: parts may differ in theirs.
  const at::Tensor scored = data_.At(indices).classes.ne(data_.ignored_class()).sum().clamp_min(1);
  BatchFigures figures;
  for (std::int64_t begin = 0; begin < indices.size(0); begin += micro_batch_) {
    const std::int64_t count = std::min(micro_batch_, indices.size(0) - begin);
    const LabelledBatch part = data_.At(indices.narrow(0, begin, count));
    const Dropout part_dropout = dropout.From(begin);
    const at::Tensor logits = decoder_.Logits(part.inputs, &part_dropout);
    const at::Tensor loss = LossSum(logits, part.classes, data_.ignored_class()) / scored;
    loss.backward();
    const at::Tensor right = CountCorrect(logits, part.classes, data_.ignored_class());
    figures.loss = figures.loss.defined() ? figures.loss + loss.detach() : loss.detach();
    figures.counts = figures.counts.defined() ? figures.counts + right : right;
  }
  return figures;
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
