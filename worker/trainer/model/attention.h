// Scaled dot-product attention for the decoder.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "worker/trainer/model/dropout.h"

namespace pelab::trainer {

struct AttentionInputs {
  at::Tensor query;  // (B, T', H, w): the last T' positions
  at::Tensor key;    // (B, T, H, w)
  at::Tensor value;  // (B, T, H, d)
  // Added to the logits after the scale 1/sqrt(w), -inf where masked: broadcastable to (B, H, T',
  // T); undefined for nothing. No row may be masked altogether.
  at::Tensor logit_term = {};
  // What query i adds to key and value j, the same for every sequence and head: (T', T, w) and (T',
  // T, d); undefined for nothing.
  at::Tensor key_term = {};
  at::Tensor value_term = {};
};

// The heads' outputs side by side: (B, T', H d). `dropout` null: evaluation. Uses the quickest path
// that fits; all paths agree within rounding.
at::Tensor Attend(const AttentionInputs& inputs, std::int64_t layer, const Dropout* dropout);

// The plain path, in LibTorch operations: right for every device and type.
at::Tensor AttendPlainly(const AttentionInputs& inputs, std::int64_t layer, const Dropout* dropout);

// The CPU kernel (attention_kernel.h), under autograd: 32-bit floats, at most kMostKernelKeys
// positions, no value_term.
at::Tensor AttendByKernel(const AttentionInputs& inputs, std::int64_t layer,
                          const Dropout* dropout);

}  // namespace pelab::trainer
