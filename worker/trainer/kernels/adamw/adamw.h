// A step of AdamW over flat parameters in one pass over memory: as train/adamw.h computes it, with the decoupled
// decay and both corrections.
//
//   p <- p (1 - lr wd);  m <- b1 m + (1 - b1) g;  v <- b2 v + (1 - b2) g^2
//   p <- p - lr / (1 - b1^t) * m / (sqrt(v) / sqrt(1 - b2^t) + eps);  g <- 0          t = step + 1
//
// What changes from step to step lies in a table, one entry a step. On CUDA it is looked up by the device's own count of
// steps, so that a graph of the step can be launched again and again.
//
// Bytes moved for a parameter: 32 (p, g, m, v read, p, g, m, v written), 2 more with a copy in Bf16.
#pragma once

#include <cmath>
#include <cstdint>

#include "worker/trainer/kernels/bf16.h"
#include "worker/trainer/kernels/portable.h"

namespace pelab::trainer {

// In the precision of the parameters, from doubles.
struct AdamWRates {
  float decay = 1;            // 1 - lr wd
  float size = 0;             // lr / (1 - b1^t)
  float root_correction = 1;  // sqrt(1 - b2^t)
};

struct AdamWSettings {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
};

// `step` counts from 0.
inline AdamWRates AdamWRatesAt(const AdamWSettings& settings, std::int64_t step,
                               double learning_rate) {
  const double t = static_cast<double>(step) + 1;
  return {static_cast<float>(1 - learning_rate * settings.weight_decay),
          static_cast<float>(learning_rate / (1 - std::pow(settings.beta1, t))),
          static_cast<float>(std::sqrt(1 - std::pow(settings.beta2, t)))};
}

// The pointers are to the memory of the device that computes, 16-byte aligned or not.
struct AdamWPass {
  std::int64_t count = 0;
  float* parameters = nullptr;         // p
  float* gradient = nullptr;           // g; zero afterwards
  float* first = nullptr;              // m
  float* second = nullptr;             // v
  Bf16* rounded = nullptr;             // p in 16 bits; null: not wanted
  const AdamWRates* rates = nullptr;   // of each step
  const std::int64_t* step = nullptr;  // which of them counts; null: the first
  float beta1 = 0;
  float beta1_rest = 0;  // 1 - b1
  float beta2 = 0;
  float beta2_rest = 0;  // 1 - b2
  float epsilon = 0;
};

inline void SetAdamW(const AdamWSettings& settings, AdamWPass* pass) {
  pass->beta1 = static_cast<float>(settings.beta1);
  pass->beta1_rest = static_cast<float>(1 - settings.beta1);
  pass->beta2 = static_cast<float>(settings.beta2);
  pass->beta2_rest = static_cast<float>(1 - settings.beta2);
  pass->epsilon = static_cast<float>(settings.epsilon);
}

// Elements [begin, end) on the CPU, where the pointers are to its memory; does not write `rounded`. Thread-safe for disjoint
// ranges.
void AdamWOnCpu(const AdamWPass& pass, std::int64_t begin, std::int64_t end);

// Queues the pass on `stream`. Thread-safe for disjoint memory; each element by itself, so the same bits every time.
KernelError AdamWOnCuda(const AdamWPass& pass, CudaStream stream);

}  // namespace pelab::trainer
