#include "worker/trainer/model/fused_layers.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include "worker/trainer/model/kernel_calls.h"
#include "worker/trainer/model/torch_tensors.h"

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

DropoutStream StreamAt(const DropoutPlace& place, const at::Tensor& x) {
  if (place.dropout == nullptr) return {};
  return place.dropout->Stream(place.layer, place.site, x.numel() / x.size(0));
}

template <class Element>
class FusedResidual : public torch::autograd::Function<FusedResidual<Element>> {
 public:
  // (y, n); n is empty without a norm, for which gamma and beta are empty.
  static variable_list forward(AutogradContext* context, const at::Tensor& x_in,
                               const at::Tensor& product_in, const at::Tensor& bias_in,
                               const at::Tensor& gamma_in, const at::Tensor& beta_in,
                               double epsilon, DropoutStream dropout, bool keep) {
    const at::Tensor x = x_in.contiguous(), product = product_in.contiguous();
    const at::Tensor bias = OrNothing(bias_in), gamma = OrNothing(gamma_in);
    const at::Tensor y = FreshLike(x);
    ResidualNorm<Element> problem = ProblemOf(y, bias, gamma, epsilon, dropout);
    problem.residual = DataOf<Element>(x);
    problem.product = DataOf<Element>(product);
    problem.beta = DataOf<float>(OrNothing(beta_in));
    at::Tensor normed = gamma.defined() ? FreshLike(x) : OrEmpty({});
    at::Tensor statistics;  // (2, R)
    if (gamma.defined()) problem.normed = DataOf<Element>(normed);
    if (gamma.defined() && keep) statistics = FreshFloats({2, problem.rows}, x);
    SetStatistics(statistics, &problem);
    Forward(x.device(), problem);
    context->set_materialize_grads(false);
    context->save_for_backward({gamma.defined() ? y : at::Tensor(), statistics, gamma, bias});
    context->saved_data["epsilon"] = epsilon;
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
    ResidualNorm<Element> problem =
        ProblemOf(y, bias, gamma, context->saved_data["epsilon"].toDouble(), dropout);
    SetStatistics(statistics, &problem);
    const at::Tensor to_x = FreshLike(like);
    const at::Tensor to_product = dropout.threshold != 0 ? FreshLike(like) : to_x;
    const std::int64_t blocks = NormBlocks(problem.rows);
    const at::Tensor partial = FreshFloats({blocks, 3, problem.width}, like);
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
    ReduceNorm(like.device(), to.partial, blocks, problem.width, DataOf<float>(to_gamma),
               DataOf<float>(to_beta), DataOf<float>(to_bias));
    return {to_x, to_product, to_bias, to_gamma, to_beta, at::Tensor(), at::Tensor(), at::Tensor()};
  }

 private:
  static ResidualNorm<Element> ProblemOf(const at::Tensor& y, const at::Tensor& bias,
                                         const at::Tensor& gamma, double epsilon,
                                         const DropoutStream& dropout) {
    ResidualNorm<Element> problem;
    problem.width = y.size(-1);
    problem.rows = y.numel() / problem.width;
    problem.sum = DataOf<Element>(y);
    problem.bias = DataOf<float>(bias);
    problem.gamma = DataOf<float>(gamma);
    problem.epsilon = static_cast<float>(epsilon);
    problem.dropout = dropout;
    return problem;
  }

  static void SetStatistics(const at::Tensor& statistics, ResidualNorm<Element>* problem) {
    if (!statistics.defined()) return;
    problem->mean = statistics.data_ptr<float>();
    problem->inverse_deviation = problem->mean + problem->rows;
  }
};

template <class Element>
class FusedActivation : public torch::autograd::Function<FusedActivation<Element>> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& product_in,
                            const at::Tensor& bias, bool gelu, DropoutStream dropout) {
    const at::Tensor product = product_in.contiguous();
    const at::Tensor out = FreshLike(product);
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
    const std::int64_t blocks = NormBlocks(problem.rows);
    const at::Tensor partial = FreshFloats({blocks, problem.width}, product);
    BiasActivationGradients<Element> to;
    to.out = DataOf<Element>(to_out);
    to.product = DataOf<Element>(to_product);
    to.partial = partial.data_ptr<float>();
    Backward(product.device(), problem, to);
    SumRows(product.device(), to.partial, blocks, problem.width, to_bias.data_ptr<float>());
    return {to_product, to_bias, at::Tensor(), at::Tensor()};
  }

 private:
  static BiasActivation<Element> ProblemOf(const at::Tensor& product, const at::Tensor& bias,
                                           bool gelu, const DropoutStream& dropout) {
    BiasActivation<Element> problem;
    problem.width = product.size(-1);
    problem.rows = product.numel() / problem.width;
    problem.product = DataOf<Element>(product);
    problem.bias = bias.data_ptr<float>();
    problem.gelu = gelu;
    problem.dropout = dropout;
    return problem;
  }
};

// Parameters are kept in 32 bits beside activations of 16.
at::Tensor As(const at::Tensor& parameter, const at::Tensor& x) {
  return parameter.to(x.scalar_type());
}

at::Tensor Dropped(const at::Tensor& x, const DropoutPlace& place) {
  return place.dropout == nullptr ? x : place.dropout->Apply(x, place.layer, place.site);
}

}  // namespace

Residual AddProductPlainly(const at::Tensor& x, const at::Tensor& product, const at::Tensor& bias,
                           const NormWeights* norm, const DropoutPlace& place) {
  Residual out(x + Dropped(bias.defined() ? product + As(bias, product) : product, place));
  if (norm != nullptr) {
    out.normed = at::layer_norm(out.x, norm->gamma.sizes(), As(norm->gamma, x), As(norm->beta, x),
                                norm->epsilon);
  }
  return out;
}

Residual AddProduct(const at::Tensor& x, const at::Tensor& product, const at::Tensor& bias,
                    const NormWeights* norm, const DropoutPlace& place) {
  if (!ResidualFits(x)) return AddProductPlainly(x, product, bias, norm, place);
  const NormWeights none;
  const NormWeights& weights = norm != nullptr ? *norm : none;
  const variable_list out = InTypeOf(x, [&](auto element) {
    return FusedResidual<decltype(element)>::apply(
        x, product, OrEmpty(bias), OrEmpty(weights.gamma), OrEmpty(weights.beta), weights.epsilon,
        StreamAt(place, product), at::GradMode::is_enabled());
  });
  return {out[0], OrNothing(out[1])};
}

at::Tensor BiasActivatePlainly(const at::Tensor& product, const at::Tensor& bias,
                               Activation activation, const DropoutPlace& place) {
  const at::Tensor inner = product + As(bias, product);
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
