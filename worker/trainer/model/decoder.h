// The decoder: token embedding, pre-norm attention and feed-forward layers, read-out. Every
// difference between protocols is a field of ModelConfig. Positional encodings act through the
// hooks of pe/pe.h.
//
//   x0     = embedding[token] + PE's input term
//   x_mid  = x  + dropout(W_O concat_h(o_h) + b_O)
//   o_h    = dropout(softmax(q_h k_h^T / sqrt(w) + PE's bias + mask) * PE's factor) v_h
//   x_next = x_mid + dropout(W_2 dropout(act(W_1 norm(x_mid) + b_1)) + b_2)
//
// q is computed from norm(x). k and v are computed from norm(x) or, with KvSource::kInput, from x0
// in every layer. If a PE brings its own projections, the width w of q and k may differ from the
// width d of v and o; the scale is always 1/sqrt(w).
//
// Letters: B batch, T positions, T' computed positions, H heads, D model width, d = D/H, C classes.
// "Rows" are the computed positions: if the read-out uses the last position and nothing is padded,
// the last layer computes that position only (T' = 1).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/experiment/job.h"
#include "worker/trainer/config/config.h"
#include "worker/trainer/model/dropout.h"
#include "worker/trainer/model/fused_layers.h"
#include "worker/trainer/parameters/parameters.h"
#include "worker/trainer/pe/pe.h"

namespace pelab::trainer {

struct AttentionInputs;

struct Batch {
  at::Tensor tokens;   // (B, T), 32-bit
  at::Tensor lengths;  // (B), 64-bit: tokens before the padding; undefined if nothing is padded
};

class Decoder {
 public:
  // Declares its parameters in `parameters`, which must outlive the decoder. Copies `config`.
  // `trial` is that of PeContext. Throws TrainerError(kBadSpec).
  Decoder(const experiment::Job& job, const ModelConfig& config, ParameterSet* parameters,
          Trial trial = Trial::kNone);

  // (B, C). `dropout` null: evaluation.
  at::Tensor Logits(const Batch& batch, const Dropout* dropout) const;

  const ModelConfig& config() const { return config_; }

  // The steps of Logits, for analyses that continue from the middle. A residual stream is (B, T,
  // D), or (B, 1, D) after a last layer with T' = 1. The norm in a Residual argument may be
  // undefined.
  at::Tensor Embed(const Batch& batch) const;
  // The inputs of attention, before biases and rotations (model/attention.h). With
  // KvSource::kInput, keys and values depend on the input only.
  struct KeysValues {
    at::Tensor query_rows;  // (B, T', H, w)
    at::Tensor key;         // (B, T, H, w)
    at::Tensor value;       // (B, T, H, d)
    // If defined: the product that computed all three tensors above (B, T, 3, H, d), or keys and
    // values (B, T, 2, H, d). The tensors are parts of it.
    at::Tensor packed;
    at::Tensor packed_key_value;
  };
  // `without_slice`: one of the LatentSlices() slices to leave out of the latents (pe/pe.h). Throws
  // std::logic_error if there is no such slice.
  KeysValues ProjectLayer(std::int64_t layer, const Residual& x, const at::Tensor& input,
                          const Batch& batch,
                          std::optional<std::int64_t> without_slice = std::nullopt) const;
  // The number of slices of d channels in the latents of queries, keys and values; 0 if the PE has
  // no latents.
  std::int64_t LatentSlices() const { return pe_->LatentSlices(); }
  // The outputs of the heads side by side, before W_O: (B, T', D).
  at::Tensor Heads(std::int64_t layer, const KeysValues& projected, const Batch& batch,
                   const Dropout* dropout) const;
  // x_mid: (B, T', D), with the norm that the feed-forward part reads.
  Residual AfterAttention(std::int64_t layer, const Residual& x, const at::Tensor& heads,
                          const Dropout* dropout) const;
  // x_mid (B, T', D) minus the contribution of one head at a time. `of` lists the heads to subtract
  // and `heads` (B, T', D) has their outputs. Gives (V B, T', D), variant after variant, with the
  // norm that the feed-forward part reads. Has no gradients.
  Residual WithoutHeads(std::int64_t layer, const at::Tensor& x_mid, const at::Tensor& heads,
                        const std::vector<std::int64_t>& of) const;
  // x_next: (B, T', D), with the norm that the next layer or the read-out reads.
  Residual AfterFeedForward(std::int64_t layer, const Residual& x_mid,
                            const Dropout* dropout) const;
  // Computes (B, C) from the output of the last layer.
  at::Tensor ReadOut(const Residual& x, const Batch& batch) const;

 private:
  // Applies hook 5 of pe/pe.h.
  void Transform(std::int64_t layer, std::int64_t length, AttentionInputs* inputs) const;
  struct Linear {
    ParameterSet::Handle weight;               // (out, in)
    std::optional<ParameterSet::Handle> bias;  // (out)
  };
  struct Norm {
    ParameterSet::Handle weight;  // (D)
    ParameterSet::Handle bias;    // (D)
  };
  struct Layer {
    Norm attention_norm;
    Linear qkv;  // (3D, D): query, key, value; not declared if the PE projects
    Linear output;
    Norm ffn_norm;
    Linear ffn_in;   // (F, D)
    Linear ffn_out;  // (D, F)
  };
  Linear AddLinear(const std::string& name, std::int64_t out, std::int64_t in, bool bias);
  Norm AddNorm(const std::string& name);
  Layer AddLayer(const std::string& name);
  at::Tensor Apply(const Linear& linear, const at::Tensor& x) const;
  // The product without the bias.
  at::Tensor Product(const Linear& linear, const at::Tensor& x) const;
  at::Tensor BiasOf(const Linear& linear) const;  // undefined if there is none
  // Reshapes (B, T, count D) to (B, T, count, H, d).
  at::Tensor ByHead(const at::Tensor& x, std::int64_t count) const;
  // (B, T', D): the input of the query projection.
  at::Tensor QuerySource(std::int64_t layer, const Residual& x, const Batch& batch) const;
  // With KvSource::kInput and the decoder's own weights, computes the keys and values of all layers
  // with one product: (B, T, 2, H, d) for each layer. Otherwise returns an empty vector.
  // ProjectQueries then adds the queries of a layer.
  std::vector<at::Tensor> ProjectInput(const at::Tensor& input) const;
  KeysValues ProjectQueries(std::int64_t layer, const Residual& x, const at::Tensor& key_value,
                            const Batch& batch) const;
  // Computes queries, keys and values with the decoder's own weights.
  KeysValues ProjectPlainly(const Layer& parts, const at::Tensor& query_source,
                            const at::Tensor& kv_source) const;
  NormWeights WeightsOf(const Norm& norm) const;
  // The norm of x: the one that x already has, or a new one.
  at::Tensor Normed(const Norm& norm, const Residual& x) const;
  bool LastRowOnly(std::int64_t layer, const Batch& batch) const;

  ModelConfig config_;
  ParameterSet& parameters_;
  std::unique_ptr<PositionalEncoding> pe_;
  ParameterSet::Handle embedding_;  // (V, D)
  std::vector<Layer> layers_;
  std::optional<Norm> final_norm_;
  Linear head_;  // (C, D)
};

}  // namespace pelab::trainer
