#include "worker/trainer/analysis/replacement_values.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/random.h"
#include "worker/trainer/analysis/sums.h"
#include "worker/trainer/protocol/error.h"
#include "worker/trainer/protocol/stop.h"
#include "worker/trainer/train/evaluate.h"

namespace pelab::trainer {
namespace {

// Reshapes (n) to (n, 1, …) with as many dimensions as `like`.
at::Tensor AsColumn(const at::Tensor& x, const at::Tensor& like) {
  std::vector<std::int64_t> sizes(like.dim(), 1);
  sizes[0] = x.size(0);
  return x.view(sizes);
}

}  // namespace

void CheckMethod(Method method, const experiment::Job& job) {
  if (method == Method::kResample) RequireDonors(job.Int("task.test_examples"));
}

Method MethodFrom(const std::string& name) {
  if (name == "zero") return Method::kZero;
  if (name == "mean") return Method::kMean;
  if (name == "resample") return Method::kResample;
  throw TrainerError(ErrorKind::kBadSpec, "this trainer has no ablation method \"" + name +
                                              "\"; known: zero, mean, resample");
}

void PositionMean::Add(const at::Tensor& values, const Batch& batch) {
  examples_ += values.size(0);
  dtype_ = values.scalar_type();
  const at::Tensor wide = values.to(at::kDouble);
  AddTo(wide.sum(0), &all_);
  if (!batch.lengths.defined()) return;
  const std::int64_t length = batch.tokens.size(1);
  const at::Tensor is_token = at::arange(length - values.size(1), length, batch.lengths.options())
                                  .lt(batch.lengths.unsqueeze(1))
                                  .to(at::kDouble);  // (B, T')
  AddTo(is_token.sum(0), &filled_);
  const at::Tensor weighted = wide.flatten(2) * is_token.unsqueeze(2);
  AddTo(weighted.sum(0).view(all_.sizes()), &tokens_);
}

at::Tensor PositionMean::Finish() const {
  at::Tensor mean = all_ / static_cast<double>(examples_);
  if (filled_.defined()) {
    const at::Tensor count = AsColumn(filled_, mean);
    mean = at::where(count.gt(0), tokens_ / count.clamp_min(1), mean);
  }
  return mean.to(dtype_).unsqueeze(0);
}

Replacement MeanHeads(const Decoder& decoder, const DeviceData& data, std::int64_t examples) {
  const at::NoGradGuard no_grad;
  std::vector<PositionMean> sums(decoder.config().layers);
  const std::int64_t most = ChunkExamples(decoder.config(), data.length(), 1, data.device());
  for (std::int64_t at = 0; at < examples; at += most) {
    ThrowIfStopped();
    const Batch batch = data.Range(at, std::min(examples, at + most)).inputs;
    const Trace trace = RunTraced(decoder, batch);
    for (std::size_t layer = 0; layer < sums.size(); ++layer) {
      sums[layer].Add(trace.layers[layer].heads, batch);
    }
  }
  std::vector<at::Tensor> means;
  for (const PositionMean& sum : sums) means.push_back(sum.Finish());
  return Replacement(std::move(means));
}

void RequireDonors(std::int64_t test_examples) {
  if (test_examples >= 2) return;
  throw TrainerError(ErrorKind::kBadSpec,
                     "ablation method resample takes a head's output from another test example: "
                     "task.test_examples is " +
                         std::to_string(test_examples) + "; allowed: 2 or more");
}

at::Tensor Donors(const DeviceData& data, std::int64_t data_seed, const at::Tensor& indices) {
  const std::int64_t first = data.train_examples();
  const std::int64_t tests = data.size() - first;
  RequireDonors(tests);
  const at::Tensor host = indices.cpu().clone();
  std::int64_t* const at = host.data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < host.numel(); ++i) {
    const bool own = at[i] >= first;  // the example is in the test set
    const std::int64_t candidates = own ? tests - 1 : tests;
    CounterRandom random(static_cast<std::uint64_t>(data_seed), "ablation/donor",
                         static_cast<std::uint64_t>(at[i]));
    std::int64_t donor = first + random.Below(static_cast<std::uint32_t>(candidates));
    if (own && donor >= at[i]) ++donor;
    at[i] = donor;
  }
  return host.to(indices.device());
}

Trace TraceDonors(const Decoder& decoder, const DeviceData& data, std::int64_t data_seed,
                  std::int64_t begin, std::int64_t end) {
  const at::Tensor indices =
      at::arange(begin, end, at::TensorOptions().dtype(at::kLong).device(data.device()));
  return RunTraced(decoder, data.At(Donors(data, data_seed, indices)).inputs);
}

Replacement HeadsAsReplacement(const Trace& trace) {
  std::vector<at::Tensor> heads;
  for (const LayerTrace& layer : trace.layers) heads.push_back(layer.heads);
  return Replacement(std::move(heads));
}

std::int64_t MeanExamples(const DeviceData& data, std::int64_t max_examples) {
  const std::int64_t all = data.train_examples();
  return max_examples == 0 ? all : std::min(all, max_examples);
}

ReplacementValues::ReplacementValues(const Decoder& decoder, const DeviceData& data, Method method,
                                     std::int64_t data_seed, std::int64_t max_examples)
    : decoder_(decoder), data_(data), method_(method), data_seed_(data_seed) {
  if (method == Method::kMean) mean_ = MeanHeads(decoder, data, MeanExamples(data, max_examples));
}

Replacement ReplacementValues::For(std::int64_t begin, std::int64_t end) const {
  if (method_ != Method::kResample) return mean_;
  return HeadsAsReplacement(TraceDonors(decoder_, data_, data_seed_, begin, end));
}

}  // namespace pelab::trainer
