// Operations on members: models of one configuration that differ in their seed alone and are computed side by side.
// Activations (M B, …) hold a member's examples after the other's. A parameter has a first dimension for the members; where
// there is one member it has none, so the number of dimensions tells, and every operation here is then the usual one.
//
// What is computed of a member does not depend on the others, and on a CPU has the same bits as alone.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace pelab::trainer {

// How many members a parameter has, which without them has `dimensions` dimensions.
inline std::int64_t MembersOf(const at::Tensor& parameter, std::int64_t dimensions) {
  return parameter.dim() > dimensions ? parameter.size(0) : 1;
}

// x (M B, …) plus or times a term for each member: of as many dimensions as x, the first M, the others as they broadcast to
// those of x after its first. A term of fewer dimensions is the same for all.
at::Tensor AddByMember(const at::Tensor& x, const at::Tensor& term);
at::Tensor TimesByMember(const at::Tensor& x, const at::Tensor& term);

// A parameter (n) or (M, n) as a term for x (M B, T, n).
inline at::Tensor ForRows(const at::Tensor& parameter) {
  return parameter.dim() > 1 ? parameter.unsqueeze(1) : parameter;
}

// x (M B, …, in) by each member's weight (M, out, in), or by (out, in): (M B, …, out).
at::Tensor ProductWith(const at::Tensor& x, const at::Tensor& weight);

// The rows of each member's table (M, V, n) at the same `indices` (any shape): (M, indices…, n); of (V, n): (indices…, n). An
// embedding look-up, whose gradient is deterministic on CUDA too.
at::Tensor LookUp(const at::Tensor& table, const at::Tensor& indices);
// The rows of each member's table at indices of its own (M B, T): (M B, T, n).
at::Tensor LookUpOwn(const at::Tensor& table, const at::Tensor& indices);

}  // namespace pelab::trainer
