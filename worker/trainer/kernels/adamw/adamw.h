// A step of AdamW over flat parameters in one pass over memory. It computes the same as
// train/adamw.h, with decoupled decay and both bias corrections.
//
//   p <- p (1 - lr wd);  m <- b1 m + (1 - b1) g;  v <- b2 v + (1 - b2) g^2
//   p <- p - lr / (1 - b1^t) * m / (sqrt(v) / sqrt(1 - b2^t) + eps);  g <- 0          t = step + 1
//
// A table with one entry per step has the values that change from step to step. On CUDA the
// device's own step count selects the entry, so that a graph of the step can be launched again and
// again.
//
// Bytes moved per parameter: 32 (p, g, m, v read; p, g, m, v written), and 2 more with a copy in
// Bf16.
#pragma once

#include <cmath>
#include <cstdint>

#include "worker/trainer/kernels/bf16.h"
#include "worker/trainer/kernels/portable.h"

namespace pelab::trainer {

// Computed as doubles, stored in the precision of the parameters.
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

// The pointers are to memory of the device that computes. They need not be aligned to 16 bytes.
struct AdamWPass {
  std::int64_t count = 0;
  float* parameters = nullptr;         // p
  float* gradient = nullptr;           // g; set to zero afterwards
  float* first = nullptr;              // m
  float* second = nullptr;             // v
  Bf16* rounded = nullptr;             // p in 16 bits; null: not needed
  const AdamWRates* rates = nullptr;   // one entry per step
  const std::int64_t* step = nullptr;  // the entry to use; null: the first
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

// Elements [begin, end) on the CPU; the pointers must be to host memory. Does not write `rounded`.
// Thread-safe for disjoint ranges.
void AdamWOnCpu(const AdamWPass& pass, std::int64_t begin, std::int64_t end);

// Queues the pass on `stream`. Thread-safe for disjoint memory. Elements are independent, so the
// bits are the same every time.
KernelError AdamWOnCuda(const AdamWPass& pass, CudaStream stream);

}  // namespace pelab::trainer
