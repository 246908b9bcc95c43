#include "worker/trainer/operations/rms_norm.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cstdint>

#include "worker/trainer/operations/kernel_calls.h"
#include "worker/trainer/parameters/members.h"
#include "worker/trainer/parameters/torch_tensors.h"

namespace pelab::trainer {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

template <class Element>
class FusedRmsNorms : public torch::autograd::Function<FusedRmsNorms<Element>> {
 public:
  // `second` is empty if there is one part.
  static variable_list forward(AutogradContext* context, const at::Tensor& x_in,
                               const at::Tensor& first, const at::Tensor& second, double epsilon,
                               bool keep) {
    const at::Tensor x = x_in.contiguous();
    const variable_list gammas = Defined({first, OrNothing(second)});
    const auto parts = static_cast<std::int64_t>(gammas.size());
    const std::int64_t rows = x.numel() / x.size(-1);
    at::Tensor statistics;  // (n, M R)
    if (keep) statistics = FreshFloats({parts, rows}, x);
    variable_list out;
    for (std::int64_t part = 0; part < parts; ++part) {
      RmsNorm<Element> problem = ProblemOf(x, gammas, statistics, epsilon, part);
      out.push_back(at::empty({x.size(0), x.size(1), problem.width}, x.options()));
      problem.normed = DataOf<Element>(out.back());
      Forward(x.device(), problem);
    }
    context->save_for_backward({x, statistics, first, OrNothing(second)});
    context->saved_data["epsilon"] = epsilon;
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor& x = saved[0];
    const variable_list gammas = Defined({saved[2], saved[3]});
    const at::Tensor to_x = FreshLike(x);
    variable_list to = {to_x, {}, {}, {}, {}};
    for (std::int64_t part = 0; part < static_cast<std::int64_t>(gammas.size()); ++part) {
      const RmsNorm<Element> problem =
          ProblemOf(x, gammas, saved[1], context->saved_data["epsilon"].toDouble(), part);
      const at::Tensor to_normed = gradients[part].contiguous();
      const std::int64_t blocks = NormBlocks(problem.rows), members = problem.members.count;
      const at::Tensor partial = FreshFloats({members, blocks, problem.width}, x);
      Backward(x.device(), problem,
               RmsNormGradients<Element>{DataOf<Element>(to_normed),
                                         DataOf<Element>(to_x) + part * problem.width,
                                         partial.data_ptr<float>()});
      const at::Tensor to_gamma = FreshLike(gammas[part]);
      SumRows(x.device(), partial.data_ptr<float>(), members, blocks, problem.width,
              to_gamma.data_ptr<float>());
      to[1 + part] = to_gamma;
    }
    return to;
  }

 private:
  static variable_list Defined(const variable_list& tensors) {
    variable_list defined;
    for (const at::Tensor& tensor : tensors) {
      if (tensor.defined()) defined.push_back(tensor);
    }
    return defined;
  }

  static RmsNorm<Element> ProblemOf(const at::Tensor& x, const variable_list& gammas,
                                    const at::Tensor& statistics, double epsilon,
                                    std::int64_t part) {
    const at::Tensor& gamma = gammas[part];
    RmsNorm<Element> problem;
    problem.width = gamma.size(-1);
    problem.members = {MembersOf(gamma, 1), gamma.dim() > 1 ? gamma.stride(0) : 0};
    problem.rows = x.numel() / x.size(-1) / problem.members.count;
    problem.x = DataOf<Element>(x) + part * problem.width;
    problem.x_stride = x.size(-1);
    problem.gamma = DataOf<float>(gamma);
    problem.epsilon = static_cast<float>(epsilon);
    if (statistics.defined()) problem.inverse_size = statistics[part].data_ptr<float>();
    return problem;
  }
};

at::Tensor RmsNormed(const at::Tensor& x, const at::Tensor& gamma, double epsilon) {
  const at::Tensor wide = Widened(x);
  const at::Tensor size = wide.square().mean(-1, /*keepdim=*/true);
  return TimesByMember(wide * at::rsqrt(size + epsilon), ForRows(gamma)).to(x.scalar_type());
}

}  // namespace

std::vector<at::Tensor> RmsNormsPlainly(const at::Tensor& x, const std::vector<at::Tensor>& gammas,
                                        double epsilon) {
  std::vector<at::Tensor> parts = x.split(gammas[0].size(-1), -1);
  for (std::size_t i = 0; i < parts.size(); ++i) parts[i] = RmsNormed(parts[i], gammas[i], epsilon);
  return parts;
}

std::vector<at::Tensor> RmsNorms(const at::Tensor& x, const std::vector<at::Tensor>& gammas,
                                 double epsilon) {
  if (!KernelsTake(x) || !NormFitsOn(x.device(), gammas[0].size(-1)))
    return RmsNormsPlainly(x, gammas, epsilon);
  return InTypeOf(x, [&](auto element) {
    return FusedRmsNorms<decltype(element)>::apply(
        x, gammas[0], OrEmpty(gammas.size() > 1 ? gammas[1] : at::Tensor()), epsilon,
        at::GradMode::is_enabled());
  });
}

}  // namespace pelab::trainer
