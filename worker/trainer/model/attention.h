// Scaled dot-product attention for the decoder: biases, rotations, logits, softmax, dropout and the
// weighted sum.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

#include "worker/trainer/model/dropout.h"

namespace pelab::trainer {

// Undefined tensors mean that the input is absent. Biases and added terms may belong to several
// members; they then have a first dimension M. The batch has B/M sequences of each member, one
// member after another (parameters/members.h).
struct AttentionInputs {
  // The outputs of the projections, without bias and not rotated.
  at::Tensor query;  // (B, T', H, w): the last T' positions
  at::Tensor key;    // (B, T, H, w)
  at::Tensor value;  // (B, T, H, d)
  // (B, T, 3, H, d): if one product computed the three tensors above, that product. The tensors are
  // parts of it, and their gradient is then also computed as one tensor.
  at::Tensor packed = {};
  // (B, T, 2, H, d): the same for keys and values only.
  at::Tensor packed_key_value = {};
  at::Tensor query_bias = {};  // (H w)
  at::Tensor key_bias = {};    // (H w)
  at::Tensor value_bias = {};  // (H d)
  // Rotations: (at least T, 1 or H, w/2), complex, contiguous. Adjacent channels are multiplied by
  // the entry for their position.
  at::Tensor query_rotations = {};
  at::Tensor key_rotations = {};
  // Added to the logits after the scale 1/sqrt(w): (1 or H, 2T-1), entry j - i + T - 1 for query i
  // and key j.
  at::Tensor distance_bias = {};
  // Terms by distance that are added to the keys and values that a query sees, the same for all
  // heads: (2T-1, w) and (2T-1, d).
  at::Tensor key_distance = {};
  at::Tensor value_distance = {};
  // If set: replaces the logits (B, H, T', T) after all terms, before the mask. Gets the queries
  // (B, H, T', w) and keys (B, H, T, w) that were multiplied, without the scale.
  std::function<at::Tensor(const at::Tensor& query, const at::Tensor& key,
                           const at::Tensor& logits)>
      change_logits = {};
  // The weights are multiplied by it before dropout: (1 or H, 2T-1), entry j - i + T - 1.
  at::Tensor distance_factor = {};
  // The keys that a query sees. `causal`: those up to its own position. `lengths` (B), at least 1:
  // only keys before the padding.
  bool causal = false;
  at::Tensor lengths = {};
};

// x (B, n, H, w) with a bias (H w) added.
at::Tensor WithHeadBias(const at::Tensor& x, const at::Tensor& bias);

// The outputs of the heads side by side: (B, T', H d). `dropout` null: evaluation. Uses the fastest
// path that accepts the inputs. All paths agree within rounding and drop the same weights.
at::Tensor Attend(const AttentionInputs& inputs, std::int64_t layer, const Dropout* dropout);

// The plain path, with LibTorch operations: correct for every device and type.
at::Tensor AttendPlainly(const AttentionInputs& inputs, std::int64_t layer, const Dropout* dropout);

// The fused kernel (kernels/attention/attention.h) with autograd. Call AttendFused only if
// FusedAttentionFits returns true.
bool FusedAttentionFits(const AttentionInputs& inputs);
at::Tensor AttendFused(const AttentionInputs& inputs, std::int64_t layer, const Dropout* dropout);

// (B, H, T', T): what key_distance adds to the logits, including the scale; undefined if it adds
// nothing.
at::Tensor KeyDistanceLogits(const AttentionInputs& inputs);

}  // namespace pelab::trainer
