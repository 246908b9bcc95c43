// Heads of content channels and rotary channels side by side (DeepSeek-AI 2024, DeepSeek-V2,
// equations 14 to 18), in one pass over memory:
//
//   out_h = [content_h | R rotary_h]
//
// R multiplies adjacent channels, read as complex numbers, by the entry for the position. All heads
// may share the rotary channels. Backward: the content's gradient is copied, that of the rotary
// channels is multiplied by the conjugate entries, after the sum over the heads that share them.
//
// Letters: R rows (batch times positions), H heads, d content channels of a head, r rotary ones
// (even). A row of content may be part of a wider one, so that keys and values of one product need
// no copies. Sums over heads have a fixed order.
#pragma once

#include <cstdint>

#include "worker/trainer/kernels/portable.h"

namespace pelab::trainer {

// Element: float, or Bf16 (bf16.h) on CUDA.
template <class Element>
struct RotaryHeads {
  std::int64_t rows = 0;             // R
  std::int64_t positions = 0;        // row i has the rotation of position i mod this
  int heads = 0;                     // H
  int width = 0;                     // d
  int rotary_width = 0;              // r
  bool shared = false;               // one head of rotary channels for all
  const Element* content = nullptr;  // (R, H d)
  std::int64_t content_stride = 0;   // elements from one row of content to the next
  const Element* rotary = nullptr;   // (R, H r) or (R, r), contiguous
  const float* rotations = nullptr;  // (positions, r / 2, 2): real and imaginary parts
  Element* out = nullptr;            // (R, H, d + r), contiguous: forward

  PELAB_HOST_DEVICE int HeadWidth() const { return width + rotary_width; }
  PELAB_HOST_DEVICE int RotaryHeadCount() const { return shared ? 1 : heads; }
};

template <class Element>
struct RotaryHeadsGradients {
  const Element* out = nullptr;  // (R, H, d + r), contiguous
  Element* content = nullptr;    // (R, H d)
  std::int64_t content_stride = 0;
  Element* rotary = nullptr;  // (R, H r) or (R, r), contiguous
};

// On the CPU: rows [begin, end). Thread-safe for disjoint ranges.
void RotaryHeadsForward(const RotaryHeads<float>& problem, std::int64_t begin, std::int64_t end);
void RotaryHeadsBackward(const RotaryHeads<float>& problem,
                         const RotaryHeadsGradients<float>& gradients, std::int64_t begin,
                         std::int64_t end);

}  // namespace pelab::trainer
