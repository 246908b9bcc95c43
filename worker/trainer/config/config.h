// The decoder's configuration. Every difference between protocols has its own field. No LibTorch.
#pragma once

#include <cstdint>

#include "core/experiment/job.h"

namespace pelab::trainer {

enum class Activation { kRelu, kGelu };
enum class KvSource {
  kSelf,   // keys and values come from the layer's own normed input
  kInput,  // from the embedding plus its positional term, without a norm, in every layer
};
enum class Readout {
  kMaskedMean,  // mean over the tokens before the padding
  kMean,        // mean over all T positions
  kLast,        // the last token before the padding
  kEach,        // every position by itself: (B T) rows of logits
};

// The places where dropout acts. The numbers are part of the random stream's address, so they must
// never change.
enum class DropoutSite { kAttention = 0, kOutput = 1, kFfnInner = 2, kFfn = 3 };
inline constexpr int kDropoutSites = 4;

struct ModelConfig {
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t d_model = 0;
  std::int64_t d_ff = 0;
  std::int64_t max_len = 0;
  std::int64_t vocabulary = 0;
  std::int64_t classes = 0;
  double dropout = 0;
  bool dropout_at[kDropoutSites] = {};
  Activation activation = Activation::kRelu;
  bool attention_bias = true;
  double layer_norm_eps = 1e-5;
  bool causal = true;
  bool mask_padding = true;
  KvSource kv_source = KvSource::kSelf;
  Readout readout = Readout::kMaskedMean;
  bool final_norm = true;
  // Whether the PE changes the logits or the weights of the attention. The plain attention then
  // computes them and keeps all of them in memory; the fused attention keeps neither.
  bool keeps_logits = false;
  // Whether the PE gives other numbers for the same positions if there are more of them, as an own
  // encoding may. It then always gets the length of the data.
  bool pe_reads_length = false;

  std::int64_t head_dim() const { return d_model / heads; }
  // Whether any result depends on values at padded positions.
  bool reads_padding() const { return !mask_padding || readout == Readout::kMean; }
};

ModelConfig ModelConfigFrom(const experiment::Job& job, std::int64_t classes);

}  // namespace pelab::trainer
