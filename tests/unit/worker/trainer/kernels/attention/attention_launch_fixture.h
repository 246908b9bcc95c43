// Runs the emulated CUDA attention kernels on the problems of attention_fixture.h. Include it
// after the emulation.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tests/support/cuda_emulation.h"
#include "tests/unit/worker/trainer/kernels/attention/attention_fixture.h"
#include "worker/trainer/kernels/attention/attention_launch.cuh"

namespace pelab::trainer {

inline constexpr auto kLaunch = [](dim3 grid, dim3 block, std::size_t shared, auto kernel,
                                   const auto&... x) {
  cuda_emulation::Launch(grid, block, shared, kernel, x...);
};

inline void Sum(const float* partial, std::int64_t members, std::int64_t rows, std::int64_t columns,
                float* sums) {
  LaunchSumAttentionPartials(partial, members, rows, columns, sums, kLaunch);
}

// Without tensor cores.
template <class Element>
AttentionResults Emulated(AttentionCase<Element>* attention) {
  return attention->RunOn(
      [](const auto& problem) { LaunchPlainAttentionForward(problem, kLaunch); },
      [](const auto& problem, const auto& gradients) {
        LaunchPlainAttentionBackward(problem, gradients, kLaunch);
      },
      Sum);
}

inline AttentionResults EmulatedTensor(AttentionCase<Bf16>* attention) {
  return attention->RunOn(
      [](const auto& problem) { LaunchTensorAttentionForward(problem, kLaunch); },
      [](const auto& problem, const auto& gradients) {
        LaunchTensorAttentionBackward(problem, gradients, kLaunch);
      },
      Sum);
}

// On tensor cores, with keys and queries in tiles.
inline AttentionResults EmulatedStreamed(AttentionCase<Bf16>* attention) {
  return attention->RunOn(
      [](const auto& problem) { LaunchStreamedAttentionForward(problem, kLaunch); },
      [](const auto& problem, const auto& gradients) {
        LaunchStreamedAttentionBackward(problem, gradients, kLaunch);
      },
      Sum);
}

}  // namespace pelab::trainer
