// Calls the kernels (worker/trainer/kernels) on the device of the tensors: on a CPU with LibTorch's
// threads, on CUDA on its current stream. Element is float, or Bf16 on CUDA. CUDA errors are thrown
// as std::runtime_error.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "worker/trainer/kernels/activation/bias_activation.h"
#include "worker/trainer/kernels/adamw/adamw.h"
#include "worker/trainer/kernels/attention/attention.h"
#include "worker/trainer/kernels/dropout/dropout_step.h"
#include "worker/trainer/kernels/loss/cross_entropy.h"
#include "worker/trainer/kernels/norm/residual_norm.h"
#include "worker/trainer/kernels/norm/rms_norm.h"
#include "worker/trainer/kernels/rotary/rotary_heads.h"

namespace pelab::trainer {

// For comparisons: from now on uses plain LibTorch operations instead of every kernel that has a
// plain version. Call this before the first model is made.
void UsePlainOperations();

// Whether kernels can work on `x`: on CUDA if this build has CUDA kernels and x has 16-bit
// (bfloat16) or 32-bit floats, on a CPU if x has 32-bit floats. False after UsePlainOperations.
bool KernelsTake(const at::Tensor& x);

// The memory of x; null if x is undefined.
template <class Element>
Element* DataOf(const at::Tensor& x) {
  return x.defined() ? static_cast<Element*>(x.data_ptr()) : nullptr;
}

// For the norms of residual_norm.h and rms_norm.h.
bool NormFitsOn(at::Device device, std::int64_t width);
template <class Element>
void Forward(at::Device device, const ResidualNorm<Element>& problem);
template <class Element>
void Backward(at::Device device, const ResidualNorm<Element>& problem,
              const ResidualNormGradients<Element>& gradients);
// Writes a row for each member (parameters/members.h) to `to_gamma`, `to_beta` and `to_bias`:
// (members, width).
void ReduceNorm(at::Device device, const float* partial, std::int64_t members, std::int64_t blocks,
                std::int64_t width, float* to_gamma, float* to_beta, float* to_bias);

template <class Element>
void Forward(at::Device device, const RmsNorm<Element>& problem);
template <class Element>
void Backward(at::Device device, const RmsNorm<Element>& problem,
              const RmsNormGradients<Element>& gradients);

template <class Element>
void Forward(at::Device device, const RotaryHeads<Element>& problem);
template <class Element>
void Backward(at::Device device, const RotaryHeads<Element>& problem,
              const RotaryHeadsGradients<Element>& gradients);

bool ActivationFitsOn(at::Device device, std::int64_t rows, std::int64_t width);
template <class Element>
void Forward(at::Device device, const BiasActivation<Element>& problem);
template <class Element>
void Backward(at::Device device, const BiasActivation<Element>& problem,
              const BiasActivationGradients<Element>& gradients);

template <class Element>
bool AttentionFitsOn(at::Device device, const FusedAttention<Element>& problem);
template <class Element>
void Forward(at::Device device, const FusedAttention<Element>& problem);
template <class Element>
void Backward(at::Device device, const FusedAttention<Element>& problem,
              const FusedAttentionGradients<Element>& gradients);

// sums (members, columns) = the sums over the rows of partial (members, rows, columns), in the
// order of the rows or in another fixed order.
void SumRows(at::Device device, const float* partial, std::int64_t members, std::int64_t rows,
             std::int64_t columns, float* sums);

void Update(at::Device device, const AdamWPass& pass);

// Whether this build has CUDA kernels; false after UsePlainOperations.
bool HasCudaKernels();
// ScoreAll, CountScored and BeginDropoutStep work on CUDA only.
template <class Element>
void ScoreAll(at::Device device, const CrossEntropy<Element>& problem);
void CountScored(at::Device device, const std::int64_t* labels, std::int64_t members,
                 std::int64_t rows, std::int64_t ignored, std::int64_t* batch);
void BeginDropoutStep(at::Device device, const DropoutStep& step);

// The masks of FillDropoutMask, one member after another, in the shape `shape`, as 32-bit floats on
// `device`.
at::Tensor DropoutMaskOn(at::Device device, const DropoutStream& stream, std::int64_t members,
                         at::IntArrayRef shape);

}  // namespace pelab::trainer
