// Connects the attention kernels to autograd.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <type_traits>

#include "worker/trainer/model/attention.h"
#include "worker/trainer/operations/kernel_calls.h"
#include "worker/trainer/parameters/members.h"
#include "worker/trainer/parameters/torch_tensors.h"

namespace pelab::trainer {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The inputs that have no gradient. Tensors may be undefined.
struct Fixed {
  at::Tensor query_rotations, key_rotations, lengths;
  bool causal = false;
  DropoutStream dropout;
  std::int64_t members = 1;
};

// Indices of the differentiable tensors, both among the inputs of the autograd function and among
// the tensors it saves.
enum Differentiable {
  kQuery,
  kKey,
  kValue,
  kQueryBias,
  kKeyBias,
  kValueBias,
  kDistance,
  kKeyDistance,
  kTerm
};
constexpr int kDifferentiable = 9;

// Query, key and value. They are three inputs, or parts of one packed product: (B, T, 3, H, d) in
// the place of the query, or (B, T, 2, H, d) in the place of the key.
struct Parts {
  Parts(const at::Tensor& query_in, const at::Tensor& key_in, const at::Tensor& value_in)
      : query(query_in), key(key_in), value(value_in) {
    if (query.dim() == 5) {
      key = query.select(2, 1);
      value = query.select(2, 2);
      query = query.select(2, 0);
    } else if (key.dim() == 5) {
      value = key.select(2, 1);
      key = key.select(2, 0);
    }
  }
  at::Tensor query, key, value;
};

at::Tensor WithContiguousRows(const at::Tensor& x) {
  return !x.defined() || x.stride(-1) == 1 ? x : x.contiguous();
}

// Element: the element type of x, may be const.
template <class Element>
HeadRows<Element> ViewHeads(const at::Tensor& x) {
  return {static_cast<Element*>(x.data_ptr()), x.stride(0), x.stride(1), x.stride(2)};
}

const float* RotationsData(const at::Tensor& rotations) {
  return rotations.defined() ? at::view_as_real(rotations).data_ptr<float>() : nullptr;
}

std::uint32_t* WordsOf(const at::Tensor& x) {
  return reinterpret_cast<std::uint32_t*>(x.data_ptr<std::int32_t>());
}

// Sets sizes and rotations only, which decide whether a kernel accepts the problem.
template <class Element>
FusedAttention<Element> ShapeOf(const Parts& parts, const Fixed& fixed) {
  FusedAttention<Element> problem;
  problem.batch = parts.query.size(0);
  problem.heads = parts.query.size(2);
  problem.rows = parts.query.size(1);
  problem.keys = parts.key.size(1);
  problem.width = parts.query.size(3);
  problem.value_width = parts.value.size(3);
  problem.query_rotations = RotationsData(fixed.query_rotations);
  problem.key_rotations = RotationsData(fixed.key_rotations);
  return problem;
}

template <class Element>
FusedAttention<Element> ProblemOf(const Parts& parts, const variable_list& inputs,
                                  const Fixed& fixed) {
  FusedAttention<Element> problem = ShapeOf<Element>(parts, fixed);
  problem.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(problem.width)));
  problem.query = ViewHeads<const Element>(parts.query);
  problem.key = ViewHeads<const Element>(parts.key);
  problem.value = ViewHeads<const Element>(parts.value);
  problem.query_bias = DataOf<float>(inputs[kQueryBias]);
  problem.key_bias = DataOf<float>(inputs[kKeyBias]);
  problem.value_bias = DataOf<float>(inputs[kValueBias]);
  problem.members.count = fixed.members;
  for (const int bias : {kQueryBias, kKeyBias, kValueBias}) {
    if (inputs[bias].defined() && inputs[bias].dim() > 1) {
      problem.members.parameter_stride = inputs[bias].stride(0);
    }
  }
  problem.rotations_by_head = fixed.query_rotations.defined() && fixed.query_rotations.size(1) > 1;
  problem.causal = fixed.causal;
  if (fixed.lengths.defined()) problem.lengths = fixed.lengths.data_ptr<std::int64_t>();
  if (const at::Tensor& distance = inputs[kDistance]; distance.defined()) {
    problem.diagonal = distance.data_ptr<float>();
    problem.diagonal_by_head = distance.size(-2) > 1;
    problem.diagonal_by_member = distance.dim() > 2;
  }
  problem.key_distance = DataOf<float>(inputs[kKeyDistance]);
  if (const at::Tensor& term = inputs[kTerm]; term.defined()) {
    const at::Tensor wide = term.expand({problem.batch, problem.heads, problem.rows, problem.keys});
    problem.term = {wide.data_ptr<float>(), wide.stride(0), wide.stride(1), wide.stride(2),
                    wide.stride(3)};
  }
  problem.dropout = fixed.dropout;
  return problem;
}

// A gradient that the kernel returns as one partial sum for each sequence and head (B, H, n), or
// for each sequence (`heads` 1).
struct Partial {
  template <class Element>
  Partial(const at::Tensor& of, const FusedAttention<Element>& problem, std::int64_t columns,
          std::optional<std::int64_t> heads = std::nullopt)
      : like(of), members(problem.members.count) {
    if (!of.defined() || !of.requires_grad()) return;
    partial = at::empty({problem.batch, heads.value_or(problem.heads), columns},
                        of.options().requires_grad(false));
  }
  // The gradient in the shape of its tensor. That tensor has, for each member, one row per head or
  // one row for all heads.
  at::Tensor Sum() const {
    if (!partial.defined()) return {};
    at::Tensor sums = FreshLike(like);
    SumRows(like.device(), partial.data_ptr<float>(), members, partial.numel() / sums.numel(),
            sums.numel() / members, sums.data_ptr<float>());
    return sums;
  }

  at::Tensor like;
  std::int64_t members;
  at::Tensor partial;  // undefined: not needed
};

template <class Element>
class AttentionFunction : public torch::autograd::Function<AttentionFunction<Element>> {
 public:
  // Tensors may be empty. `keep`: gradients will be needed.
  static at::Tensor forward(AutogradContext* context, const at::Tensor& query,
                            const at::Tensor& key, const at::Tensor& value,
                            const at::Tensor& query_bias, const at::Tensor& key_bias,
                            const at::Tensor& value_bias, const at::Tensor& distance,
                            const at::Tensor& key_distance, const at::Tensor& term,
                            const Fixed& fixed, bool keep) {
    variable_list inputs;
    for (const at::Tensor* x :
         {&query, &key, &value, &query_bias, &key_bias, &value_bias, &distance, &key_distance}) {
      inputs.push_back(WithContiguousRows(OrNothing(*x)));
    }
    inputs.push_back(OrNothing(term));
    const Parts parts(inputs[kQuery], inputs[kKey], inputs[kValue]);
    FusedAttention<Element> problem = ProblemOf<Element>(parts, inputs, fixed);
    at::Tensor out = at::empty({problem.batch, problem.rows, problem.heads, problem.value_width},
                               parts.query.options().requires_grad(false));
    problem.out = ViewHeads<Element>(out);
    at::Tensor log_sums, rest;
    if (keep) log_sums = FreshFloats({problem.batch, problem.heads, problem.rows}, out);
    if (keep && std::is_same_v<Element, Bf16> && !AttentionKeepsLogits(problem)) {
      rest = FreshLike(out);
      problem.out_rest = ViewHeads<Element>(rest);
    }
    problem.log_sum_exp = DataOf<float>(log_sums);
    at::Tensor kept;
    if (const std::int64_t words = AttentionKeptWords(problem); keep && words > 0) {
      kept = at::empty({words}, out.options().dtype(at::kInt));
      problem.kept = WordsOf(kept);
    }
    Forward(out.device(), problem);
    inputs.insert(inputs.end(),
                  {log_sums, fixed.query_rotations, fixed.key_rotations, fixed.lengths,
                   out.device().is_cpu() ? at::Tensor() : out, rest, kept});
    context->save_for_backward(std::move(inputs));
    context->saved_data["causal"] = fixed.causal;
    context->saved_data["members"] = fixed.members;
    SaveStream(fixed.dropout, context);
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const Fixed fixed{saved[kDifferentiable + 1], saved[kDifferentiable + 2],
                      saved[kDifferentiable + 3], context->saved_data["causal"].toBool(),
                      SavedStream(context),       context->saved_data["members"].toInt()};
    FusedAttention<Element> problem =
        ProblemOf<Element>(Parts(saved[kQuery], saved[kKey], saved[kValue]), saved, fixed);
    problem.log_sum_exp = DataOf<float>(saved[kDifferentiable]);
    const at::Tensor &out = saved[kDifferentiable + 4], &rest = saved[kDifferentiable + 5];
    if (out.defined()) problem.out = ViewHeads<Element>(out);
    if (rest.defined()) problem.out_rest = ViewHeads<Element>(rest);
    if (const at::Tensor& kept = saved[kDifferentiable + 6]; kept.defined()) {
      problem.kept = WordsOf(kept);
    }
    variable_list to(kDifferentiable + 2);
    for (const int part : {kQuery, kKey, kValue}) {
      if (saved[part].defined()) to[part] = FreshLike(saved[part]);
    }
    const Parts to_parts(to[kQuery], to[kKey], to[kValue]);
    const at::Tensor to_out = WithContiguousRows(gradients[0]);
    FusedAttentionGradients<Element> into;
    into.out = ViewHeads<const Element>(to_out);
    into.query = ViewHeads<Element>(to_parts.query);
    into.key = ViewHeads<Element>(to_parts.key);
    into.value = ViewHeads<Element>(to_parts.value);
    const Partial query_bias(saved[kQueryBias], problem, problem.width);
    const Partial key_bias(saved[kKeyBias], problem, problem.width);
    const Partial value_bias(saved[kValueBias], problem, problem.value_width);
    const Partial distance(saved[kDistance], problem, 2 * problem.keys - 1);
    const Partial key_distance(saved[kKeyDistance], problem, (2 * problem.keys - 1) * problem.width,
                               /*heads=*/1);
    const Partial term(saved[kTerm], problem, problem.rows * problem.keys);
    into.query_bias = DataOf<float>(query_bias.partial);
    into.key_bias = DataOf<float>(key_bias.partial);
    into.value_bias = DataOf<float>(value_bias.partial);
    into.diagonal = DataOf<float>(distance.partial);
    into.key_distance = DataOf<float>(key_distance.partial);
    into.term = DataOf<float>(term.partial);
    Backward(to_out.device(), problem, into);
    to[kQueryBias] = query_bias.Sum();
    to[kKeyBias] = key_bias.Sum();
    to[kValueBias] = value_bias.Sum();
    to[kDistance] = distance.Sum();
    to[kKeyDistance] = key_distance.Sum();
    if (term.partial.defined()) {
      to[kTerm] =
          at::sum_to(term.partial.view({problem.batch, problem.heads, problem.rows, problem.keys}),
                     saved[kTerm].sizes());
    }
    return to;
  }
};

}  // namespace

bool FusedAttentionFits(const AttentionInputs& inputs) {
  if (!KernelsTake(inputs.query) || inputs.value_distance.defined()) return false;
  if (inputs.change_logits || inputs.distance_factor.defined()) return false;
  const Parts parts(inputs.query, inputs.key, inputs.value);
  const Fixed fixed{inputs.query_rotations, inputs.key_rotations};
  return InTypeOf(inputs.query, [&](auto element) {
    return AttentionFitsOn(inputs.query.device(), ShapeOf<decltype(element)>(parts, fixed));
  });
}

at::Tensor AttendFused(const AttentionInputs& inputs, std::int64_t layer, const Dropout* dropout) {
  // Lengths that are repeated for variants may be one number with stride 0.
  Fixed fixed{inputs.query_rotations, inputs.key_rotations, Contiguous(inputs.lengths),
              inputs.causal};
  if (dropout != nullptr) {
    const std::int64_t pairs = inputs.query.size(1) * inputs.key.size(1);
    fixed.dropout = dropout->Stream(layer, DropoutSite::kAttention, inputs.query.size(2) * pairs);
    fixed.members = dropout->members();
  }
  // Without dropout, the per-member tensors tell the number of members.
  for (const at::Tensor& bias : {inputs.query_bias, inputs.value_bias}) {
    if (bias.defined()) fixed.members = std::max(fixed.members, MembersOf(bias, 1));
  }
  if (inputs.distance_bias.defined()) {
    fixed.members = std::max(fixed.members, MembersOf(inputs.distance_bias, 2));
  }
  // The CPU kernel computes these logits itself.
  at::Tensor term, key_distance = inputs.key_distance;
  if (!inputs.query.device().is_cpu() && key_distance.defined()) {
    term = KeyDistanceLogits(inputs).to(at::kFloat);
    key_distance = at::Tensor();
  }
  if (key_distance.defined()) fixed.members = MembersOf(key_distance, 2);
  at::Tensor query = inputs.query, key = inputs.key, value = inputs.value;
  if (term.defined()) {
    // The query also gets a gradient from the term, so the packed product is not used.
  } else if (inputs.packed.defined()) {
    query = inputs.packed;
    key = value = at::Tensor();
  } else if (inputs.packed_key_value.defined()) {
    key = inputs.packed_key_value;
    value = at::Tensor();
  }
  return InTypeOf(inputs.query, [&](auto element) {
    return AttentionFunction<decltype(element)>::apply(
               query, OrEmpty(key), OrEmpty(value), OrEmpty(inputs.query_bias),
               OrEmpty(inputs.key_bias), OrEmpty(inputs.value_bias),
               OrEmpty(Contiguous(inputs.distance_bias)), OrEmpty(Contiguous(key_distance)),
               OrEmpty(term), fixed, at::GradMode::is_enabled())
        .flatten(2);
  });
}

}  // namespace pelab::trainer
