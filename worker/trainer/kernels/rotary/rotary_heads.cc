#include "worker/trainer/kernels/rotary/rotary_heads.h"

#include <algorithm>

namespace pelab::trainer {
namespace {

const float* RotationsOf(const RotaryHeads<float>& p, std::int64_t row) {
  return p.rotations + row % p.positions * p.rotary_width;
}

void Turn(const float* x, const float* rotations, int width, float* to) {
  for (int c = 0; c < width; c += 2) {
    to[c] = x[c] * rotations[c] - x[c + 1] * rotations[c + 1];
    to[c + 1] = x[c] * rotations[c + 1] + x[c + 1] * rotations[c];
  }
}

// By the conjugate entries. In place.
void TurnBack(const float* rotations, int width, float* x) {
  for (int c = 0; c < width; c += 2) {
    const float real = x[c];
    x[c] = real * rotations[c] + x[c + 1] * rotations[c + 1];
    x[c + 1] = x[c + 1] * rotations[c] - real * rotations[c + 1];
  }
}

void ForwardRow(const RotaryHeads<float>& p, std::int64_t row) {
  const float* const content = p.content + row * p.content_stride;
  const float* const rotary = p.rotary + row * p.RotaryHeadCount() * p.rotary_width;
  const float* const rotations = RotationsOf(p, row);
  float* const out = p.out + row * p.heads * p.HeadWidth();
  for (std::int64_t head = 0; head < p.heads; ++head) {
    float* const to = out + head * p.HeadWidth();
    std::copy_n(content + head * p.width, p.width, to);
    if (p.shared && head > 0) {
      std::copy_n(out + p.width, p.rotary_width, to + p.width);
    } else {
      Turn(rotary + head * p.rotary_width, rotations, p.rotary_width, to + p.width);
    }
  }
}

void BackwardRow(const RotaryHeads<float>& p, const RotaryHeadsGradients<float>& g,
                 std::int64_t row) {
  const float* const out = g.out + row * p.heads * p.HeadWidth();
  float* const content = g.content + row * g.content_stride;
  float* const rotary = g.rotary + row * p.RotaryHeadCount() * p.rotary_width;
  const float* const rotations = RotationsOf(p, row);
  for (std::int64_t head = 0; head < p.heads; ++head) {
    const float* const from = out + head * p.HeadWidth();
    std::copy_n(from, p.width, content + head * p.width);
    float* const to = rotary + (p.shared ? 0 : head * p.rotary_width);
    if (p.shared && head > 0) {
      for (int c = 0; c < p.rotary_width; ++c) to[c] += from[p.width + c];
    } else {
      std::copy_n(from + p.width, p.rotary_width, to);
    }
    if (!p.shared) TurnBack(rotations, p.rotary_width, to);
  }
  if (p.shared) TurnBack(rotations, p.rotary_width, rotary);
}

}  // namespace

void RotaryHeadsForward(const RotaryHeads<float>& problem, std::int64_t begin, std::int64_t end) {
  for (std::int64_t row = begin; row < end; ++row) ForwardRow(problem, row);
}

void RotaryHeadsBackward(const RotaryHeads<float>& problem,
                         const RotaryHeadsGradients<float>& gradients, std::int64_t begin,
                         std::int64_t end) {
  for (std::int64_t row = begin; row < end; ++row) BackwardRow(problem, gradients, row);
}

}  // namespace pelab::trainer
