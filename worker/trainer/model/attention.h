// Scaled dot-product attention for the decoder: biases, turns, logits, softmax, dropout and the weighted sum.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "worker/trainer/model/dropout.h"

namespace pelab::trainer {

// Undefined tensors stand for nothing. Biases and what is added may be those of several members, with a first dimension M; the
// sequences are then B/M of each, one member's after the other's (model/members.h).
struct AttentionInputs {
  // As the projections' products give them, without bias and not turned.
  at::Tensor query;  // (B, T', H, w): the last T' positions
  at::Tensor key;    // (B, T, H, w)
  at::Tensor value;  // (B, T, H, d)
  // (B, T, 3, H, d): the product of which the three above are the parts, if one made them all; their gradient is then
  // made in one piece too.
  at::Tensor packed = {};
  // (B, T, 2, H, d): likewise, of keys and values alone.
  at::Tensor packed_key_value = {};
  at::Tensor query_bias = {};  // (H w)
  at::Tensor key_bias = {};    // (H w)
  at::Tensor value_bias = {};  // (H d)
  // (at least T, 1 or H, w/2), complex, contiguous: adjacent channels are multiplied by the entry for their position.
  at::Tensor query_turns = {};
  at::Tensor key_turns = {};
  // Added to the logits after the scale 1/sqrt(w): (1 or H, 2T-1), entry j - i + T - 1 for query i and key j.
  at::Tensor distance_bias = {};
  // What a query adds to the keys and values that it sees, by the distance, the same for every head: (2T-1, w) and (2T-1, d).
  at::Tensor key_distance = {};
  at::Tensor value_distance = {};
  // What a query sees: the keys up to its own position, and of those before the padding, (B) of them, at least one.
  bool causal = false;
  at::Tensor lengths = {};
};

// The heads' outputs side by side: (B, T', H d). `dropout` null: evaluation. Uses the quickest path that fits; all paths
// agree within rounding and drop the same weights.
at::Tensor Attend(const AttentionInputs& inputs, std::int64_t layer, const Dropout* dropout);

// The plain path, in LibTorch operations: right for every device and type.
at::Tensor AttendPlainly(const AttentionInputs& inputs, std::int64_t layer, const Dropout* dropout);

// The kernel of kernels/attention_cpu.h under autograd. Not where FusedAttentionFits says no.
bool FusedAttentionFits(const AttentionInputs& inputs);
at::Tensor AttendFused(const AttentionInputs& inputs, std::int64_t layer, const Dropout* dropout);

// (B, H, T', T): what key_distance adds to the logits, scaled; undefined for nothing.
at::Tensor KeyDistanceLogits(const AttentionInputs& inputs);

}  // namespace pelab::trainer
