// Helpers for the autograd functions of the fused operations.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cstdint>

#include "worker/trainer/kernels/bf16.h"
#include "worker/trainer/kernels/dropout_stream.h"

namespace pelab::trainer {

// Autograd functions of LibTorch 1.13 do not accept undefined tensors, so an empty tensor takes the
// place of an undefined one.
inline at::Tensor OrEmpty(const at::Tensor& x) {
  return x.defined() ? x : at::empty({0}, at::TensorOptions().dtype(at::kFloat));
}
inline at::Tensor OrNothing(const at::Tensor& x) { return x.numel() == 0 ? at::Tensor() : x; }

inline at::Tensor FreshLike(const at::Tensor& x) {
  return at::empty(x.sizes(), x.options().requires_grad(false));
}

inline at::Tensor FreshFloats(at::IntArrayRef sizes, const at::Tensor& beside) {
  return at::empty(sizes, at::TensorOptions().dtype(at::kFloat).device(beside.device()));
}

// x in at least 32 bits, for sums and logarithms that would lose too much precision in 16.
inline at::Tensor Widened(const at::Tensor& x) {
  return x.scalar_type() == at::kBFloat16 ? x.to(at::kFloat) : x;
}

// The product multiply(x, y). On a CPU, factors of 16 bits are widened and the sums rounded, as
// tensor cores do: LibTorch's own loops for them take twenty times as long, and some round on the
// way.
template <class Multiply>
at::Tensor ProductOf(const at::Tensor& x, const at::Tensor& y, const Multiply& multiply) {
  if (!x.device().is_cpu() || x.scalar_type() != at::kBFloat16) return multiply(x, y);
  return multiply(x.to(at::kFloat), y.to(at::kFloat)).to(at::kBFloat16);
}

// Calls call(float()) or call(Bf16()), by the element type of x.
template <typename Call>
auto InTypeOf(const at::Tensor& x, const Call& call) {
  return x.scalar_type() == at::kBFloat16 ? call(Bf16()) : call(float());
}

inline at::Tensor Contiguous(const at::Tensor& x) { return x.defined() ? x.contiguous() : x; }

// These carry a dropout stream from forward to backward.
inline void SaveStream(const DropoutStream& stream, torch::autograd::AutogradContext* context) {
  context->saved_data["dropout"] = c10::List<std::int64_t>(
      {stream.key0, stream.key1, stream.threshold, stream.first,
       static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(stream.keys)), stream.member_keys,
       stream.skipped, stream.inverse});
  context->saved_data["kept"] = static_cast<double>(stream.kept);
}
inline DropoutStream SavedStream(torch::autograd::AutogradContext* context) {
  const auto words = context->saved_data["dropout"].toIntVector();
  const auto word = [&](int i) { return static_cast<std::uint32_t>(words[i]); };
  DropoutStream stream{word(0), word(1), word(2)};
  stream.kept = static_cast<float>(context->saved_data["kept"].toDouble());
  stream.first = word(3);
  // The context keeps numbers only; this one was made from the pointer.
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  stream.keys = reinterpret_cast<const std::uint32_t*>(static_cast<std::intptr_t>(words[4]));
  stream.member_keys = words[5];
  stream.skipped = word(6);
  stream.inverse = word(7);
  return stream;
}

}  // namespace pelab::trainer
