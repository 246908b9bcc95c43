#include "worker/trainer/model/fused_layers.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include "worker/trainer/operations/kernel_calls.h"
#include "worker/trainer/parameters/members.h"
#include "worker/trainer/parameters/torch_tensors.h"

namespace pelab::trainer {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

bool ResidualFits(const at::Tensor& x) {
  return KernelsTake(x) && NormFitsOn(x.device(), x.size(-1));
}

bool ActivationFits(const at::Tensor& x) {
  return KernelsTake(x) && ActivationFitsOn(x.device(), x.numel() / x.size(-1), x.size(-1));
}

// The number of members: from the first parameter that is defined, else from the dropout.
std::int64_t MembersAt(const DropoutPlace& place,
                       std::initializer_list<const at::Tensor*> parameters) {
  for (const at::Tensor* parameter : parameters) {
    if (parameter->defined()) return MembersOf(*parameter, 1);
  }
  return place.dropout == nullptr ? 1 : place.dropout->members();
}

// The layout of `count` members with these parameters (M, n), which all have the same stride.
Members LayOut(std::int64_t count, std::initializer_list<const at::Tensor*> parameters) {
  Members members{count, 0};
  for (const at::Tensor* parameter : parameters) {
    if (parameter->defined() && parameter->dim() > 1)
      members.parameter_stride = parameter->stride(0);
  }
  return members;
}

DropoutStream StreamAt(const DropoutPlace& place, const at::Tensor& x) {
  if (place.dropout == nullptr) return {};
  return place.dropout->Stream(place.layer, place.site, x.numel() / x.size(0));
}

// `statistics` has the means and the inverse deviations: (2, M R).
template <class Element>
void SetStatistics(const at::Tensor& statistics, ResidualNorm<Element>* problem) {
  if (!statistics.defined()) return;
  problem->mean = statistics.data_ptr<float>();
  problem->inverse_deviation = problem->mean + statistics.size(1);
}

template <class Element>
class FusedResidual : public torch::autograd::Function<FusedResidual<Element>> {
 public:
  // Returns (y, n). Without a norm, gamma, beta and n are empty.
  static variable_list forward(AutogradContext* context, const at::Tensor& x_in,
                               const at::Tensor& product_in, const at::Tensor& bias_in,
                               const at::Tensor& gamma_in, const at::Tensor& beta_in,
                               double epsilon, DropoutStream dropout, std::int64_t members,
                               bool keep) {
    const at::Tensor x = x_in.contiguous(), product = product_in.contiguous();
    const at::Tensor bias = OrNothing(bias_in), gamma = OrNothing(gamma_in);
    const at::Tensor y = FreshLike(x);
    ResidualNorm<Element> problem = ProblemOf(y, bias, gamma, epsilon, dropout, members);
    problem.residual = DataOf<Element>(x);
    problem.product = DataOf<Element>(product);
    problem.beta = DataOf<float>(OrNothing(beta_in));
    at::Tensor normed = gamma.defined() ? FreshLike(x) : OrEmpty({});
    at::Tensor statistics;  // (2, M R)
    if (gamma.defined()) problem.normed = DataOf<Element>(normed);
    if (gamma.defined() && keep) statistics = FreshFloats({2, members * problem.rows}, x);
    SetStatistics(statistics, &problem);
    Forward(x.device(), problem);
    context->set_materialize_grads(false);
    context->save_for_backward({gamma.defined() ? y : at::Tensor(), statistics, gamma, bias});
    context->saved_data["epsilon"] = epsilon;
    context->saved_data["members"] = members;
    SaveStream(dropout, context);
    return {y, normed};
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &statistics = saved[1], &gamma = saved[2], &bias = saved[3];
    const at::Tensor to_y = Contiguous(gradients[0]);
    at::Tensor to_normed = gamma.defined() ? Contiguous(gradients[1]) : at::Tensor();
    const at::Tensor& like = to_y.defined() ? to_y : to_normed;
    if (gamma.defined() && !to_normed.defined()) to_normed = at::zeros_like(like);
    const DropoutStream dropout = SavedStream(context);
    const at::Tensor& y = saved[0].defined() ? saved[0] : like;
    const std::int64_t members = context->saved_data["members"].toInt();
    ResidualNorm<Element> problem =
        ProblemOf(y, bias, gamma, context->saved_data["epsilon"].toDouble(), dropout, members);
    SetStatistics(statistics, &problem);
    const at::Tensor to_x = FreshLike(like);
    const at::Tensor to_product = dropout.threshold != 0 ? FreshLike(like) : to_x;
    const std::int64_t blocks = NormBlocks(problem.rows);
    const at::Tensor partial = FreshFloats({members, blocks, 3, problem.width}, like);
    ResidualNormGradients<Element> to;
    to.sum = DataOf<Element>(to_y);
    to.normed = DataOf<Element>(to_normed);
    to.residual = DataOf<Element>(to_x);
    to.product = to_product.is_same(to_x) ? nullptr : DataOf<Element>(to_product);
    to.partial = partial.data_ptr<float>();
    Backward(like.device(), problem, to);
    at::Tensor to_bias, to_gamma, to_beta;
    if (bias.defined()) to_bias = FreshLike(bias);
    if (gamma.defined()) to_gamma = FreshLike(gamma), to_beta = FreshLike(gamma);
    ReduceNorm(like.device(), to.partial, members, blocks, problem.width, DataOf<float>(to_gamma),
               DataOf<float>(to_beta), DataOf<float>(to_bias));
    return {to_x, to_product, to_bias, to_gamma, to_beta, {}, {}, {}, {}};
  }

 private:
  static ResidualNorm<Element> ProblemOf(const at::Tensor& y, const at::Tensor& bias,
                                         const at::Tensor& gamma, double epsilon,
                                         const DropoutStream& dropout, std::int64_t members) {
    ResidualNorm<Element> problem;
    problem.width = y.size(-1);
    problem.members = LayOut(members, {&bias, &gamma});
    problem.rows = y.numel() / problem.width / members;
    problem.sum = DataOf<Element>(y);
    problem.bias = DataOf<float>(bias);
    problem.gamma = DataOf<float>(gamma);
    problem.epsilon = static_cast<float>(epsilon);
    problem.dropout = dropout;
    return problem;
  }
};

// The norm of a tensor that is already in memory.
template <class Element>
class FusedNorm : public torch::autograd::Function<FusedNorm<Element>> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x_in,
                            const at::Tensor& gamma, const at::Tensor& beta, double epsilon,
                            bool keep) {
    const at::Tensor x = x_in.contiguous();
    at::Tensor normed = FreshLike(x);
    ResidualNorm<Element> problem = ProblemOf(x, gamma, epsilon);
    problem.residual = DataOf<Element>(x);
    problem.normed = DataOf<Element>(normed);
    problem.beta = DataOf<float>(beta);
    at::Tensor statistics;  // (2, M R)
    if (keep) statistics = FreshFloats({2, problem.members.count * problem.rows}, x);
    SetStatistics(statistics, &problem);
    Forward(x.device(), problem);
    context->save_for_backward({x, statistics, gamma});
    context->saved_data["epsilon"] = epsilon;
    return normed;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &gamma = saved[2];
    ResidualNorm<Element> problem = ProblemOf(x, gamma, context->saved_data["epsilon"].toDouble());
    problem.sum = DataOf<Element>(x);
    SetStatistics(saved[1], &problem);
    const at::Tensor to_normed = gradients[0].contiguous(), to_x = FreshLike(x);
    const at::Tensor to_gamma = FreshLike(gamma), to_beta = FreshLike(gamma);
    const std::int64_t blocks = NormBlocks(problem.rows), members = problem.members.count;
    const at::Tensor partial = FreshFloats({members, blocks, 3, problem.width}, x);
    ResidualNormGradients<Element> to;
    to.normed = DataOf<Element>(to_normed);
    to.residual = DataOf<Element>(to_x);
    to.partial = partial.data_ptr<float>();
    Backward(x.device(), problem, to);
    ReduceNorm(x.device(), to.partial, members, blocks, problem.width, DataOf<float>(to_gamma),
               DataOf<float>(to_beta), nullptr);
    return {to_x, to_gamma, to_beta, {}, {}};
  }

 private:
  static ResidualNorm<Element> ProblemOf(const at::Tensor& x, const at::Tensor& gamma,
                                         double epsilon) {
    ResidualNorm<Element> problem;
    problem.width = x.size(-1);
    problem.members = LayOut(MembersOf(gamma, 1), {&gamma});
    problem.rows = x.numel() / problem.width / problem.members.count;
    problem.gamma = DataOf<float>(gamma);
    problem.epsilon = static_cast<float>(epsilon);
    return problem;
  }
};

template <class Element>
class FusedActivation : public torch::autograd::Function<FusedActivation<Element>> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& product_in,
                            const at::Tensor& bias, bool gelu, DropoutStream dropout) {
    const at::Tensor product = product_in.contiguous();
    at::Tensor out = FreshLike(product);
    BiasActivation<Element> problem = ProblemOf(product, bias, gelu, dropout);
    problem.out = DataOf<Element>(out);
    Forward(product.device(), problem);
    context->save_for_backward({product, bias});
    context->saved_data["gelu"] = gelu;
    SaveStream(dropout, context);
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &product = saved[0], &bias = saved[1];
    const BiasActivation<Element> problem =
        ProblemOf(product, bias, context->saved_data["gelu"].toBool(), SavedStream(context));
    const at::Tensor to_out = gradients[0].contiguous();
    const at::Tensor to_product = FreshLike(product), to_bias = FreshLike(bias);
    const std::int64_t blocks = NormBlocks(problem.rows), members = problem.members.count;
    const at::Tensor partial = FreshFloats({members, blocks, problem.width}, product);
    BiasActivationGradients<Element> to;
    to.out = DataOf<Element>(to_out);
    to.product = DataOf<Element>(to_product);
    to.partial = partial.data_ptr<float>();
    Backward(product.device(), problem, to);
    SumRows(product.device(), to.partial, members, blocks, problem.width,
            to_bias.data_ptr<float>());
    return {to_product, to_bias, at::Tensor(), at::Tensor()};
  }

 private:
  static BiasActivation<Element> ProblemOf(const at::Tensor& product, const at::Tensor& bias,
                                           bool gelu, const DropoutStream& dropout) {
    BiasActivation<Element> problem;
    problem.width = product.size(-1);
    problem.members = LayOut(MembersOf(bias, 1), {&bias});
    problem.rows = product.numel() / problem.width / problem.members.count;
    problem.product = DataOf<Element>(product);
    problem.bias = bias.data_ptr<float>();
    problem.gelu = gelu;
    problem.dropout = dropout;
    return problem;
  }
};

// Parameters have 32 bits even if activations have 16.
at::Tensor As(const at::Tensor& parameter, const at::Tensor& x) {
  return parameter.to(x.scalar_type());
}

// Adds to x (M B, T, n) the parameter of each member.
at::Tensor Plus(const at::Tensor& x, const at::Tensor& parameter) {
  return AddByMember(x, ForRows(As(parameter, x)));
}

at::Tensor Dropped(const at::Tensor& x, const DropoutPlace& place) {
  return place.dropout == nullptr ? x : place.dropout->Apply(x, place.layer, place.site);
}

}  // namespace

Residual AddProductPlainly(const at::Tensor& x, const at::Tensor& product, const at::Tensor& bias,
                           const NormWeights* norm, const DropoutPlace& place) {
  Residual out(x + Dropped(bias.defined() ? Plus(product, bias) : product, place));
  if (norm != nullptr) out.normed = NormPlainly(out.x, *norm);
  return out;
}

Residual TakeAway(const at::Tensor& x_in, const at::Tensor& contributions_in,
                  const NormWeights& norm) {
  if (!ResidualFits(x_in)) return TakeAwayPlainly(x_in, contributions_in, norm);
  const at::Tensor x = x_in.contiguous(), contributions = contributions_in.contiguous();
  Residual out(FreshLike(contributions), FreshLike(contributions));
  InTypeOf(x, [&](auto element) {
    using Element = decltype(element);
    ResidualNorm<Element> problem;
    problem.width = x.size(-1);
    problem.rows = contributions.numel() / problem.width;
    problem.residual = DataOf<Element>(x);
    problem.residual_rows = x.numel() / problem.width;
    problem.product = DataOf<Element>(contributions);
    problem.sign = -1;
    problem.gamma = DataOf<float>(norm.gamma);
    problem.beta = DataOf<float>(norm.beta);
    problem.epsilon = static_cast<float>(norm.epsilon);
    problem.sum = DataOf<Element>(out.x);
    problem.normed = DataOf<Element>(out.normed);
    Forward(x.device(), problem);
  });
  return out;
}

Residual TakeAwayPlainly(const at::Tensor& x, const at::Tensor& contributions,
                         const NormWeights& norm) {
  const at::Tensor apart = contributions.view({-1, x.size(0), x.size(1), x.size(2)});
  const at::Tensor left = (x - apart).flatten(0, 1);
  return {left, NormPlainly(left, norm)};
}

at::Tensor NormPlainly(const at::Tensor& x, const NormWeights& norm) {
  const at::Tensor gamma = As(norm.gamma, x), beta = As(norm.beta, x);
  if (gamma.dim() == 1) return at::layer_norm(x, gamma.sizes(), gamma, beta, norm.epsilon);
  const at::Tensor centered = at::layer_norm(x, {x.size(-1)}, {}, {}, norm.epsilon);
  return AddByMember(TimesByMember(centered, ForRows(gamma)), ForRows(beta));
}

Residual AddProduct(const at::Tensor& x, const at::Tensor& product, const at::Tensor& bias,
                    const NormWeights* norm, const DropoutPlace& place) {
  if (!ResidualFits(x)) return AddProductPlainly(x, product, bias, norm, place);
  const NormWeights none;
  const NormWeights& weights = norm != nullptr ? *norm : none;
  const std::int64_t members = MembersAt(place, {&bias, &weights.gamma});
  const variable_list out = InTypeOf(x, [&](auto element) {
    return FusedResidual<decltype(element)>::apply(
        x, product, OrEmpty(bias), OrEmpty(weights.gamma), OrEmpty(weights.beta), weights.epsilon,
        StreamAt(place, product), members, at::GradMode::is_enabled());
  });
  return {out[0], OrNothing(out[1])};
}

at::Tensor Norm(const at::Tensor& x, const NormWeights& norm) {
  if (!ResidualFits(x)) return NormPlainly(x, norm);
  return InTypeOf(x, [&](auto element) {
    return FusedNorm<decltype(element)>::apply(x, norm.gamma, norm.beta, norm.epsilon,
                                               at::GradMode::is_enabled());
  });
}

at::Tensor BiasActivatePlainly(const at::Tensor& product, const at::Tensor& bias,
                               Activation activation, const DropoutPlace& place) {
  const at::Tensor inner = Plus(product, bias);
  return Dropped(activation == Activation::kRelu ? at::relu(inner) : at::gelu(inner), place);
}

at::Tensor BiasActivate(const at::Tensor& product, const at::Tensor& bias, Activation activation,
                        const DropoutPlace& place) {
  if (!ActivationFits(product)) return BiasActivatePlainly(product, bias, activation, place);
  return InTypeOf(product, [&](auto element) {
    return FusedActivation<decltype(element)>::apply(product, bias, activation == Activation::kGelu,
                                                     StreamAt(place, product));
  });
}

}  // namespace pelab::trainer
