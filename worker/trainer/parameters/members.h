// Operations on members: models of one configuration that differ only in their seed and are
// computed side by side. M is the number of members, B the number of examples of each. In an
// activation (M B, …), the first dimension has the size M * B: the examples of the first member,
// then those of the second, and so on. A parameter has an additional first dimension for the
// members. With one member it does not have this dimension. So the number of dimensions tells which
// case applies, and with one member every operation here is the usual one.
//
// The results of a member do not depend on the others. On a CPU they have the same bits as if the
// member were computed alone.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace pelab::trainer {

// The number of members of a parameter that has `dimensions` dimensions without a dimension for
// members.
inline std::int64_t MembersOf(const at::Tensor& parameter, std::int64_t dimensions) {
  return parameter.dim() > dimensions ? parameter.size(0) : 1;
}

// Adds a term to x (M B, …), or multiplies x by it, with one term per member. The term has as many
// dimensions as x: the first is M, the others broadcast to the other dimensions of x. A term with
// fewer dimensions is the same for all members.
at::Tensor AddByMember(const at::Tensor& x, const at::Tensor& term);
at::Tensor TimesByMember(const at::Tensor& x, const at::Tensor& term);

// Reshapes a parameter (n) or (M, n) to a term for x (M B, T, n).
inline at::Tensor ForRows(const at::Tensor& parameter) {
  return parameter.dim() > 1 ? parameter.unsqueeze(1) : parameter;
}

// Multiplies x (M B, …, in) by the weight of each member (M, out, in), or by one weight (out, in):
// (M B, …, out).
at::Tensor ProductWith(const at::Tensor& x, const at::Tensor& weight);

// Looks up the rows of each member's table (M, V, n) at the same `indices` (any shape): (M,
// indices…, n). A table (V, n) gives (indices…, n). The gradient of this embedding look-up is
// deterministic, on CUDA too.
at::Tensor LookUp(const at::Tensor& table, const at::Tensor& indices);
// Looks up the rows of each member's table at that member's own indices (M B, T): (M B, T, n).
at::Tensor LookUpOwn(const at::Tensor& table, const at::Tensor& indices);

}  // namespace pelab::trainer
