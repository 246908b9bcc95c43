// The kernels (worker/trainer/kernels) on the device of their tensors: on a CPU over LibTorch's threads, on CUDA on its
// current stream. Element is float, or on CUDA Bf16. Errors of CUDA are thrown as std::runtime_error.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "worker/trainer/kernels/activation/bias_activation.h"
#include "worker/trainer/kernels/adamw/adamw.h"
#include "worker/trainer/kernels/attention/attention.h"
#include "worker/trainer/kernels/dropout/dropout_step.h"
#include "worker/trainer/kernels/loss/cross_entropy.h"
#include "worker/trainer/kernels/norm/residual_norm.h"

namespace pelab::trainer {

// For comparisons: from now on plain operations of LibTorch in place of every kernel that has a plain way beside it. Call before the
// first model is made.
void UsePlainOperations();

// Whether kernels can work on `x`: on CUDA where this build has them and in 16 or 32 bits, on a CPU in 32 bits.
bool KernelsTake(const at::Tensor& x);

// x's memory; null where x is undefined.
template <class Element>
Element* DataOf(const at::Tensor& x) {
  return x.defined() ? static_cast<Element*>(x.data_ptr()) : nullptr;
}

bool NormFitsOn(at::Device device, std::int64_t width);
template <class Element>
void Forward(at::Device device, const ResidualNorm<Element>& problem);
template <class Element>
void Backward(at::Device device, const ResidualNorm<Element>& problem,
              const ResidualNormGradients<Element>& gradients);
// Of every member: to… (members, width).
void ReduceNorm(at::Device device, const float* partial, std::int64_t members, std::int64_t blocks,
                std::int64_t width, float* to_gamma, float* to_beta, float* to_bias);

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

// sums (members, columns) = the sums over the rows of partial (members, rows, columns), in their order or another fixed one.
void SumRows(at::Device device, const float* partial, std::int64_t members, std::int64_t rows,
             std::int64_t columns, float* sums);

void Update(at::Device device, const AdamWPass& pass);

// CUDA alone.
bool HasCudaKernels();
template <class Element>
void ScoreAll(at::Device device, const CrossEntropy<Element>& problem);
void CountScored(at::Device device, const std::int64_t* labels, std::int64_t members,
                 std::int64_t rows, std::int64_t ignored, std::int64_t* batch);
void BeginDropoutStep(at::Device device, const DropoutStep& step);

// The masks of FillDropoutMask, one member's after the other's, together shaped like `shape`, in 32-bit floats on `device`.
at::Tensor DropoutMaskOn(at::Device device, const DropoutStream& stream, std::int64_t members,
                         at::IntArrayRef shape);

}  // namespace pelab::trainer
