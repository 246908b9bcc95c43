#include "worker/trainer/model/attention.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cmath>

#include "worker/trainer/model/attention_kernel.h"

namespace pelab::trainer {
namespace {

constexpr std::int64_t kHeadsPerTask = 16;

at::Tensor WithContiguousRows(const at::Tensor& x) { return x.stride(3) == 1 ? x : x.contiguous(); }

HeadsView ViewHeads(const at::Tensor& x) {
  return {x.data_ptr<float>(), x.stride(0), x.stride(1), x.stride(2)};
}

LogitsView ViewLogits(const at::Tensor& x) {
  if (!x.defined()) return {};
  return {x.data_ptr<float>(), x.stride(0), x.stride(1), x.stride(2), x.stride(3)};
}

// (B, H, R, T) without copying.
at::Tensor ExpandLogits(const at::Tensor& x, const AttentionProblem& problem, std::int64_t batch) {
  return x.defined() ? x.expand({batch, problem.heads, problem.rows, problem.keys}) : x;
}

double LogitScale(const at::Tensor& query) {
  return 1 / std::sqrt(static_cast<double>(query.size(3)));
}

AttentionProblem ProblemOf(const at::Tensor& query, const at::Tensor& key,
                           const at::Tensor& value) {
  AttentionProblem problem;
  problem.heads = query.size(2);
  problem.rows = query.size(1);
  problem.keys = key.size(1);
  problem.width = query.size(3);
  problem.value_width = value.size(3);
  problem.scale = static_cast<float>(LogitScale(query));
  problem.query = ViewHeads(query);
  problem.key = ViewHeads(key);
  problem.value = ViewHeads(value);
  return problem;
}

template <typename Function>
void OverHeads(std::int64_t heads, const Function& function) {
  at::parallel_for(0, heads, kHeadsPerTask, function);
}

// Autograd's functions of LibTorch 1.13 take no undefined tensors: an empty one stands for nothing.
at::Tensor OrEmpty(const at::Tensor& x) {
  return x.defined() ? x : at::empty({0}, at::TensorOptions().dtype(at::kFloat));
}
at::Tensor OrNothing(const at::Tensor& x) { return x.numel() == 0 ? at::Tensor() : x; }

// The kernel under autograd. `term` and `mask` may be empty; the gradient of `term` is summed over
// what it repeats.
class KernelAttention : public torch::autograd::Function<KernelAttention> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& query_in,
                            const at::Tensor& key_in, const at::Tensor& value_in,
                            const at::Tensor& term_in, const at::Tensor& mask_in, bool keep) {
    const at::Tensor term = OrNothing(term_in);
    const at::Tensor mask = OrNothing(mask_in);
    const at::Tensor query = WithContiguousRows(query_in);
    const at::Tensor key = WithContiguousRows(key_in);
    const at::Tensor value = WithContiguousRows(value_in);
    const std::int64_t batch = query.size(0);
    AttentionProblem problem = ProblemOf(query, key, value);
    const at::Tensor out = at::empty({batch, problem.rows, problem.heads, problem.value_width},
                                     query.options().requires_grad(false));
    at::Tensor saved;
    if (keep) saved = at::empty({batch, problem.heads, problem.rows, problem.keys}, out.options());
    const at::Tensor wide = ExpandLogits(term, problem, batch);
    problem.term = ViewLogits(wide);
    problem.mask = ViewLogits(mask);
    problem.saved = ViewLogits(saved);
    problem.out = ViewHeads(out);
    OverHeads(batch * problem.heads,
              [&](std::int64_t begin, std::int64_t end) { AttentionForward(problem, begin, end); });
    context->save_for_backward({query, key, value, term, mask, saved});
    return out;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &query = saved[0], &key = saved[1], &value = saved[2], &term = saved[3];
    const at::Tensor gradient = WithContiguousRows(gradients[0]);
    AttentionProblem problem = ProblemOf(query, key, value);
    const auto fresh = [](const at::Tensor& like) {
      return at::empty(like.sizes(), like.options().requires_grad(false));
    };
    const at::Tensor to_query = fresh(query), to_key = fresh(key), to_value = fresh(value);
    at::Tensor to_logits;
    if (term.defined() && term.requires_grad()) to_logits = fresh(saved[5]);
    problem.mask = ViewLogits(saved[4]);
    problem.saved = ViewLogits(saved[5]);
    problem.out_gradient = ViewHeads(gradient);
    problem.query_gradient = ViewHeads(to_query);
    problem.key_gradient = ViewHeads(to_key);
    problem.value_gradient = ViewHeads(to_value);
    problem.logits_gradient = ViewLogits(to_logits);
    OverHeads(query.size(0) * problem.heads, [&](std::int64_t begin, std::int64_t end) {
      AttentionBackward(problem, begin, end);
    });
    const at::Tensor to_term =
        to_logits.defined() ? at::sum_to(to_logits, term.sizes()) : at::Tensor();
    return {to_query, to_key, to_value, to_term, at::Tensor(), at::Tensor()};
  }
};

bool KernelFits(const AttentionInputs& inputs) {
  return inputs.query.device().is_cpu() && inputs.query.scalar_type() == at::kFloat &&
         inputs.key.size(1) <= kMostKernelKeys && !inputs.value_term.defined();
}

// For every row i of the queries a product of its own: x (B, H, T', m), y (T', m, n) to (B, H, T',
// n).
at::Tensor ProductByRow(const at::Tensor& x, const at::Tensor& y) {
  const at::Tensor rows = x.permute({2, 0, 1, 3}).flatten(1, 2);  // (T', B H, m)
  return at::bmm(rows, y).view({x.size(2), x.size(0), x.size(1), y.size(2)}).permute({1, 2, 0, 3});
}

// logit_term together with what key_term gives; undefined for nothing.
at::Tensor WholeTerm(const AttentionInputs& inputs) {
  if (!inputs.key_term.defined()) return inputs.logit_term;
  const at::Tensor query = inputs.query.transpose(1, 2) * LogitScale(inputs.query);
  const at::Tensor term = ProductByRow(query, inputs.key_term.transpose(1, 2));
  return inputs.logit_term.defined() ? term + inputs.logit_term : term;
}

}  // namespace

at::Tensor AttendPlainly(const AttentionInputs& inputs, std::int64_t layer,
                         const Dropout* dropout) {
  const auto heads_first = [](const at::Tensor& x) { return x.transpose(1, 2); };  // (B, H, T, …)
  at::Tensor logits = at::matmul(heads_first(inputs.query) * LogitScale(inputs.query),
                                 heads_first(inputs.key).transpose(-2, -1));
  if (const at::Tensor term = WholeTerm(inputs); term.defined()) logits = logits + term;
  at::Tensor weights = at::softmax(logits, -1);  // (B, H, T', T)
  if (dropout != nullptr) weights = dropout->Apply(weights, layer, DropoutSite::kAttention);
  at::Tensor out = at::matmul(weights, heads_first(inputs.value));
  if (inputs.value_term.defined()) out = out + ProductByRow(weights, inputs.value_term);
  return out.transpose(1, 2).flatten(2);
}

at::Tensor AttendByKernel(const AttentionInputs& inputs, std::int64_t layer,
                          const Dropout* dropout) {
  at::Tensor mask;
  if (dropout != nullptr && dropout->ActsAt(DropoutSite::kAttention)) {
    mask = dropout->Mask(
        {inputs.query.size(0), inputs.query.size(2), inputs.query.size(1), inputs.key.size(1)},
        layer, DropoutSite::kAttention);
  }
  const at::Tensor term = WholeTerm(inputs);
  const bool keep = at::GradMode::is_enabled() &&
                    (inputs.query.requires_grad() || inputs.key.requires_grad() ||
                     inputs.value.requires_grad() || (term.defined() && term.requires_grad()));
  return KernelAttention::apply(inputs.query, inputs.key, inputs.value, OrEmpty(term),
                                OrEmpty(mask), keep)
      .flatten(2);
}

at::Tensor Attend(const AttentionInputs& inputs, std::int64_t layer, const Dropout* dropout) {
  return KernelFits(inputs) ? AttendByKernel(inputs, layer, dropout)
                            : AttendPlainly(inputs, layer, dropout);
}

}  // namespace pelab::trainer
