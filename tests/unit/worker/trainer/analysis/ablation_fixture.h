// Plain ablations, one example at a time, as a reference for the analyses.
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/unit/worker/trainer/model_fixture.h"
#include "worker/trainer/analysis/head_ablation.h"
#include "worker/trainer/analysis/replacement_values.h"
#include "worker/trainer/task/dataset.h"
#include "worker/trainer/train/batches.h"

namespace pelab::trainer {

inline catalog::Value Word(const char* value) { return catalog::Value(std::string(value)); }

// A hygiene with a replacement: zeros (0), a mean of all examples (1), or another example's values
// (5, the number of examples). There are six.
struct Pair {
  Hygiene hygiene;
  std::int64_t replaced_by;
};
inline Pair PairOf(std::size_t number) {
  constexpr std::int64_t kReplacedBy[] = {0, 1, 5};
  return {number % 2 == 0 ? Hygiene::kClean : Hygiene::kAuthors, kReplacedBy[number % 3]};
}

// Removes a head from the weights. Zeroing its rows of W_V and b_V removes its output and leaves
// the output projection's bias.
inline void ZeroValues(const TestModel& model, std::int64_t layer, std::int64_t head) {
  const std::int64_t d = model.config.head_dim();
  const std::string name = "layers." + std::to_string(layer) + ".attention.value.";
  model.Parameter(name + "weight").narrow(0, d * head, d).zero_();
  if (model.config.attention_bias) model.Parameter(name + "bias").narrow(0, d * head, d).zero_();
}

// A job with its data and a model in double precision.
struct Subject {
  explicit Subject(const experiment::Job& job)
      : dataset(MakeDataset(job)),
        labels(LabelSpaceOf(job, dataset)),
        data(dataset, labels, at::kCPU),
        model(job, labels.classes) {}
  Dataset dataset;
  LabelSpace labels;
  DeviceData data;
  TestModel model;
};

// Runs one example alone through the decoder, with `change` applied to the heads' outputs (T', D)
// of each layer. Returns its logits (C).
template <typename Change>
at::Tensor LogitsOfOne(const Subject& subject, std::int64_t example, const Change& change) {
  const Decoder& decoder = subject.model.decoder;
  const Batch batch = subject.data.Range(example, example + 1).inputs;
  const at::Tensor input = decoder.Embed(batch);
  Residual x = input;
  for (std::int64_t layer = 0; layer < decoder.config().layers; ++layer) {
    at::Tensor heads =
        decoder.Heads(layer, decoder.ProjectLayer(layer, x, input, batch), batch, nullptr).clone();
    at::Tensor of_one = heads[0];
    change(layer, &of_one);
    x = decoder.AfterFeedForward(layer, decoder.AfterAttention(layer, x, heads, nullptr), nullptr);
  }
  return decoder.ReadOut(x, batch)[0];
}

// The logits of each of the examples [begin, end) with nothing removed.
inline std::vector<at::Tensor> LogitsOfEach(const Subject& subject, std::int64_t begin,
                                            std::int64_t end) {
  std::vector<at::Tensor> logits;
  for (std::int64_t i = begin; i < end; ++i) {
    logits.push_back(LogitsOfOne(subject, i, [](std::int64_t, at::Tensor*) {}));
  }
  return logits;
}

// The heads' outputs (T', D) of each layer.
inline std::vector<at::Tensor> HeadsOfOne(const Subject& subject, std::int64_t example) {
  std::vector<at::Tensor> heads;
  LogitsOfOne(subject, example,
              [&](std::int64_t, at::Tensor* of_one) { heads.push_back(of_one->clone()); });
  return heads;
}

// The heads' means over training examples [0, count) by plain loops. At each position the mean is
// over the examples with a token there.
inline std::vector<at::Tensor> PlainMeans(const Subject& subject, std::int64_t count) {
  std::vector<std::vector<at::Tensor>> heads;
  for (std::int64_t i = 0; i < count; ++i) heads.push_back(HeadsOfOne(subject, i));
  std::vector<at::Tensor> means;
  for (std::size_t layer = 0; layer < heads[0].size(); ++layer) {
    at::Tensor mean = at::zeros_like(heads[0][layer]);
    for (std::int64_t t = 0; t < mean.size(0); ++t) {
      std::int64_t filled = 0;
      for (std::int64_t i = 0; i < count; ++i) filled += t < subject.dataset.lengths[i];
      for (std::int64_t i = 0; i < count; ++i) {
        const bool counts = filled == 0 || t < subject.dataset.lengths[i];
        if (counts)
          mean[t] += heads[i][layer][t] / static_cast<double>(filled > 0 ? filled : count);
      }
    }
    means.push_back(mean);
  }
  return means;
}

// The heads' outputs of the donor of each of the examples [begin, end), for one seed.
inline std::vector<std::vector<at::Tensor>> HeadsOfDonors(const Subject& subject, std::int64_t seed,
                                                          std::int64_t begin, std::int64_t end) {
  std::vector<std::vector<at::Tensor>> heads;
  for (std::int64_t i = begin; i < end; ++i) {
    const at::Tensor donor = Donors(subject.data, seed, at::tensor({i}));
    heads.push_back(HeadsOfOne(subject, donor.item<std::int64_t>()));
  }
  return heads;
}

inline experiment::Job PaddedJob(const std::string& protocol, const std::string& pe) {
  return SmallJob(protocol, pe, "distance",
                  {{"task.definition", Word("published")},
                   {"task.max_segment", std::int64_t{3}},
                   {"task.max_gap", std::int64_t{6}},
                   {"task.truncate", std::int64_t{15}}});
}

// The figures of one entry, computed by plain loops over examples.
struct Plain {
  double intact_nll = 0;
  std::int64_t total = 0, intact_correct = 0, correct = 0, lost = 0, gained = 0;
  double nll = 0, error = 0;
};

// `intact`: the logits of each of the examples from `begin` on, which all entries share.
template <typename LogitsOf>
Plain CountPlainly(const Subject& subject, std::int64_t begin,
                   const std::vector<at::Tensor>& intact, const LogitsOf& ablated) {
  Plain plain;
  std::vector<double> changes;
  for (std::int64_t i = begin; i < begin + static_cast<std::int64_t>(intact.size()); ++i) {
    const std::int64_t wanted = subject.dataset.labels[i] - subject.labels.offset;
    if (!subject.labels.score_zero && wanted == 0) continue;
    const at::Tensor& before = intact[i - begin];
    const at::Tensor after = ablated(i);
    const auto nll = [&](const at::Tensor& logits) {
      return -at::log_softmax(logits, 0)[wanted].item<double>();
    };
    const bool was = before.argmax().item<std::int64_t>() == wanted;
    const bool is = after.argmax().item<std::int64_t>() == wanted;
    ++plain.total;
    plain.intact_correct += was;
    plain.correct += is;
    plain.lost += was && !is;
    plain.gained += is && !was;
    plain.intact_nll += nll(before);
    plain.nll += nll(after);
    changes.push_back(nll(after) - nll(before));
  }
  const auto n = static_cast<double>(plain.total);
  plain.intact_nll /= n;
  plain.nll /= n;
  double mean = 0, squares = 0;
  for (const double change : changes) mean += change / n;
  for (const double change : changes) squares += (change - mean) * (change - mean) / n;
  plain.error = std::sqrt(squares / n);
  return plain;
}

}  // namespace pelab::trainer
