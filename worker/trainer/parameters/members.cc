#include "worker/trainer/parameters/members.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <vector>

#include "worker/trainer/parameters/torch_tensors.h"

namespace pelab::trainer {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// On a CPU multiplies the matrices of each member separately: batched products of the library are
// not faster there and may round differently.
void MultiplyEach(const at::Tensor& a, const at::Tensor& b, const at::Tensor& to) {
  if (!a.device().is_cpu()) {
    at::Tensor out = to;
    at::bmm_out(out, a, b);
    return;
  }
  for (std::int64_t m = 0; m < a.size(0); ++m) {
    at::Tensor out = to.select(0, m);
    at::mm_out(out, a.select(0, m), b.select(0, m));
  }
}

at::Tensor Multiplied(const at::Tensor& a, const at::Tensor& b) {
  return ProductOf(a, b, [](const at::Tensor& x, const at::Tensor& y) {
    at::Tensor to = at::empty({x.size(0), x.size(1), y.size(2)}, x.options());
    MultiplyEach(x, y, to);
    return to;
  });
}

// Multiplies x (M, R, in) by the transposes of the weights: (M, R, out). It has its own gradient,
// so that the gradient of the weights has the same memory layout as the weights.
class LinearByMember : public torch::autograd::Function<LinearByMember> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x,
                            const at::Tensor& weight) {
    context->save_for_backward({x, weight});
    return Multiplied(x.detach(), weight.detach().transpose(1, 2));
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor to_out = gradients[0].contiguous();
    at::Tensor to_x;
    if (context->needs_input_grad(0)) to_x = Multiplied(to_out, saved[1].detach());
    return {to_x, Multiplied(to_out.transpose(1, 2), saved[0].detach())};
  }
};

// Reshapes x (M B, …) to (M, B, …).
at::Tensor Apart(const at::Tensor& x, std::int64_t members) {
  std::vector<std::int64_t> sizes = {members, x.size(0) / members};
  sizes.insert(sizes.end(), x.sizes().begin() + 1, x.sizes().end());
  return x.reshape(sizes);
}

// Sums x (M B, …) to the sizes of a term or of the members' terms (M, …). On a CPU each member's
// sum is computed as it would be for that member alone.
at::Tensor SumToTerm(const at::Tensor& x, const at::Tensor& term) {
  if (term.dim() < x.dim()) return at::sum_to(x, term.sizes());
  const at::Tensor apart = Apart(x, term.size(0));
  if (!x.device().is_cpu()) return at::sum_to(apart, term.unsqueeze(1).sizes()).view(term.sizes());
  at::Tensor sums = at::empty(term.sizes(), x.options());
  for (std::int64_t m = 0; m < term.size(0); ++m) {
    sums.select(0, m).copy_(at::sum_to(apart.select(0, m), term.select(0, m).sizes()));
  }
  return sums;
}

// An addition whose gradient is summed in one order, whatever the memory layout of the incoming
// gradient.
class AddTerm : public torch::autograd::Function<AddTerm> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& term) {
    context->save_for_backward({term});
    if (term.dim() < x.dim()) return x + term;
    return (Apart(x, term.size(0)) + term.unsqueeze(1)).flatten(0, 1);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const at::Tensor term = context->get_saved_variables()[0].detach();
    at::Tensor to_term;
    if (context->needs_input_grad(1)) to_term = SumToTerm(gradients[0].contiguous(), term);
    return {gradients[0], to_term};
  }
};

// A multiplication by the members' terms. Its gradient sums each member's part as AddTerm does.
class TimesTerms : public torch::autograd::Function<TimesTerms> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& term) {
    context->save_for_backward({x, term});
    return (Apart(x, term.size(0)) * term.unsqueeze(1)).flatten(0, 1);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor x = saved[0].detach(), term = saved[1].detach();
    at::Tensor to_x, to_term;
    if (context->needs_input_grad(0)) {
      to_x = (Apart(gradients[0], term.size(0)) * term.unsqueeze(1)).flatten(0, 1);
    }
    if (context->needs_input_grad(1)) to_term = SumToTerm(gradients[0] * x, term);
    return {to_x, to_term};
  }
};

// Rows joins the members' tables into one. FirstRows gives the index of each member's first row in
// it: (M, 1, …), with one dimension more than `indices`.
at::Tensor Rows(const at::Tensor& table) { return table.reshape({-1, table.size(2)}); }
at::Tensor FirstRows(const at::Tensor& table, const at::Tensor& indices) {
  std::vector<std::int64_t> shape(indices.dim() + 1, 1);
  shape[0] = table.size(0);
  return (at::arange(table.size(0), indices.options()) * table.size(1)).view(shape);
}

}  // namespace

at::Tensor AddByMember(const at::Tensor& x, const at::Tensor& term) {
  return AddTerm::apply(x, term);
}

at::Tensor TimesByMember(const at::Tensor& x, const at::Tensor& term) {
  return term.dim() < x.dim() ? x * term : TimesTerms::apply(x, term);
}

at::Tensor ProductWith(const at::Tensor& x, const at::Tensor& weight) {
  const std::int64_t members = MembersOf(weight, 2);
  if (members == 1) {
    return ProductOf(x, weight,
                     [](const at::Tensor& a, const at::Tensor& b) { return at::linear(a, b); });
  }
  std::vector<std::int64_t> shape = x.sizes().vec();
  const at::Tensor rows = x.reshape({members, -1, x.size(-1)});
  shape.back() = weight.size(1);
  return LinearByMember::apply(rows, weight).view(shape);
}

at::Tensor LookUp(const at::Tensor& table, const at::Tensor& indices) {
  if (MembersOf(table, 2) == 1) return at::embedding(table, indices);
  return at::embedding(Rows(table), indices.unsqueeze(0) + FirstRows(table, indices));
}

at::Tensor LookUpOwn(const at::Tensor& table, const at::Tensor& indices) {
  if (MembersOf(table, 2) == 1) return at::embedding(table, indices);
  std::vector<std::int64_t> apart = indices.sizes().vec();
  apart[0] /= table.size(0);
  apart.insert(apart.begin(), table.size(0));
  return at::embedding(Rows(table),
                       (indices.view(apart) + FirstRows(table, indices)).flatten(0, 1));
}

}  // namespace pelab::trainer
