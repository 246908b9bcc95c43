// The results of training in a simulation: a pure function of the job and of how it is executed.
// Each epoch follows from the one before, as in a trainer that resumes from a checkpoint. A history
// with faults must end with the same numbers as one without. The jobs of the recorded sweep have
// the results that were recorded.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "core/base/random.h"
#include "pelab/v1/fleet.pb.h"
#include "tests/sim/recording.h"

namespace pelab::sim {

inline constexpr std::int64_t kExamples = 997;
inline constexpr std::uint64_t kWeightsBytes = 12;

// The settings of an attempt that change the last bits of a result, as one number.
inline int HowOf(int threads, int packing) { return threads + 100 * packing; }

inline std::uint64_t StartState(std::string_view key, int how) {
  return Mix64(PurposeId(key) + static_cast<std::uint64_t>(how));
}
inline std::uint64_t NextState(std::uint64_t state) { return Mix64(state + 1); }
inline std::int64_t TestCorrect(std::uint64_t state) {
  return static_cast<std::int64_t>(state % kExamples);
}

// The results of the epoch that ends in `state`.
inline v1::Epoch EpochOf(int epoch, std::uint64_t state) {
  v1::Epoch out;
  out.set_epoch(epoch);
  out.set_train_loss(static_cast<double>(state % 1000) / 1000);
  out.set_train_correct(static_cast<std::int64_t>((state >> 20) % kExamples));
  out.set_train_total(kExamples);
  out.set_test_loss(static_cast<double>((state >> 10) % 1000) / 1000);
  out.set_test_correct(TestCorrect(state));
  out.set_test_total(kExamples);
  out.set_learning_rate(0.001);
  out.set_seconds(1);
  return out;
}
// The results of an epoch of the job with this key.
inline v1::Epoch TrainedEpoch(std::string_view key, int epoch, std::uint64_t state) {
  const RecordedJob* const recorded = RecordedJobOf(key);
  return recorded == nullptr ? EpochOf(epoch, state) : recorded->epochs.at(epoch);
}
inline std::uint64_t StateAfter(std::string_view key, int how, int epochs) {
  std::uint64_t state = StartState(key, how);
  for (int i = 0; i < epochs; ++i) state = NextState(state);
  return state;
}

// Reads the number of epochs from the canonical spec: {"…","train":{…,"epochs":3,…}}.
inline int EpochsOf(const std::string& spec_json) {
  constexpr std::string_view kName = "\"epochs\":";
  const std::size_t at = spec_json.find(kName);
  return at == std::string::npos ? 0 : std::atoi(spec_json.c_str() + at + kName.size());
}

inline std::int64_t LostOf(std::string_view key, std::string_view parameters, int head) {
  return static_cast<std::int64_t>(Mix64(PurposeId(key) ^ PurposeId(parameters) ^ head) % 400);
}
// The sizes of a job that are known without its spec: examples, model and weights.
struct Shape {
  std::int64_t examples = kExamples;
  int layers = 1;
  int heads = 2;
  std::uint64_t weights_bytes = kWeightsBytes;
};
inline Shape ShapeOf(std::string_view key) {
  const RecordedJob* const recorded = RecordedJobOf(key);
  if (recorded == nullptr) return {};
  return {.examples = recorded->matrix.total(),
          .layers = recorded->matrix.layers(),
          .heads = recorded->matrix.heads(),
          .weights_bytes = recorded->weights.bytes()};
}

// A matrix of 1 layer x 2 heads, or the recorded one.
inline v1::HeadAblation MatrixOf(const std::string& key, const v1::Analysis& analysis) {
  const RecordedJob* const recorded = RecordedJobOf(key);
  v1::HeadAblation out = recorded == nullptr ? v1::HeadAblation() : recorded->matrix;
  out.set_version(analysis.version());
  out.set_parameters_json(analysis.parameters_json());
  if (recorded != nullptr) return out;
  out.set_layers(1);
  out.set_heads(2);
  out.set_total(kExamples);
  out.set_intact_correct(500);
  out.set_intact_nll(1);
  out.set_chance(0.01);
  for (int head = 0; head < 2; ++head) {
    const std::int64_t lost = LostOf(key, analysis.parameters_json(), head);
    out.add_correct(500 - lost);
    out.add_lost(lost);
    out.add_gained(0);
    out.add_nll(1.5);
    out.add_nll_standard_error(0.1);
  }
  return out;
}
inline std::string WeightsOf(std::string_view key) {
  if (const RecordedJob* const recorded = RecordedJobOf(key)) return recorded->weights.sha256();
  std::string sha256;
  for (std::uint64_t i = 0; i < 4; ++i) {
    const std::uint64_t part = Mix64(PurposeId(key) + i);
    for (int digit = 0; digit < 16; ++digit) {
      sha256 += "0123456789abcdef"[(part >> (4 * digit)) & 15];
    }
  }
  return sha256;
}

}  // namespace pelab::sim
