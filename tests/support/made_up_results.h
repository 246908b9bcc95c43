// Made-up results without training: learning curves that level off, and head-ablation matrices in
// which one head may matter. Everything is computed from (seed, spec). Values; thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/random.h"
#include "server/store/writes.h"

namespace pelab {

class MadeUpJob {
 public:
  MadeUpJob(const std::string& spec_json, std::uint64_t seed);

  int epochs() const { return epochs_; }
  v1::Epoch EpochAt(int epoch) const;
  v1::HeadAblation Matrix(const store::Analysis& analysis) const;
  // For layer_ablation, cumulative_ablation and split_accuracy (of the splits train, test and
  // long); any other analysis gets an empty object.
  v1::AnalysisResult Result(const store::Analysis& analysis) const;

 private:
  double Noise(std::uint64_t index) const;  // in [-1, 1)
  double Accuracy(int epoch) const;
  double DropOf(int layer, int head, const std::string& method) const;

  CounterRandom random_;
  std::string pe_;
  std::string task_;
  int epochs_ = 0;
  int layers_ = 0;
  int heads_ = 0;
  int real_entries_ = 0;  // existing entries per layer if the ablation's target is the authors'
  std::int64_t train_ = 0;
  std::int64_t test_ = 0;
  double learning_rate_ = 0;
  double chance_ = 0;
  double top_ = 0;   // the accuracy at which the curve levels off
  double rate_ = 0;  // how fast the curve gets there, relative to the number of epochs
  int deposit_layer_ = -1;
  int deposit_head_ = 0;
};

}  // namespace pelab
