#include "worker/trainer/operations/rotary_heads.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "worker/trainer/operations/kernel_calls.h"
#include "worker/trainer/parameters/torch_tensors.h"

namespace pelab::trainer {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// One row behind another, at a constant distance.
at::Tensor WithRowStride(const at::Tensor& x) {
  const bool even = x.stride(-1) == 1 && x.stride(0) == x.size(1) * x.stride(1);
  return even ? x : x.contiguous();
}

template <class Element>
class FusedRotaryHeads : public torch::autograd::Function<FusedRotaryHeads<Element>> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& content_in,
                            const at::Tensor& rotary_in, const at::Tensor& rotations,
                            std::int64_t heads) {
    const at::Tensor content = WithRowStride(content_in), rotary = rotary_in.contiguous();
    RotaryHeads<Element> problem = ProblemOf(content.sizes(), rotary.sizes(), rotations, heads);
    at::Tensor out =
        at::empty({content.size(0), content.size(1), heads, problem.HeadWidth()}, rotary.options());
    problem.content = DataOf<Element>(content);
    problem.content_stride = content.stride(1);
    problem.rotary = DataOf<Element>(rotary);
    problem.out = DataOf<Element>(out);
    Forward(content.device(), problem);
    context->save_for_backward({rotations});
    context->saved_data["content"] = content.sizes();
    context->saved_data["rotary"] = rotary.sizes();
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const at::Tensor to_out = gradients[0].contiguous();
    const auto sizes = [&](const char* of) { return context->saved_data[of].toIntVector(); };
    const at::Tensor to_content = at::empty(sizes("content"), to_out.options());
    const at::Tensor to_rotary = at::empty(sizes("rotary"), to_out.options());
    const at::Tensor rotations = context->get_saved_variables()[0];
    const RotaryHeads<Element> problem =
        ProblemOf(to_content.sizes(), to_rotary.sizes(), rotations, to_out.size(2));
    Backward(to_out.device(), problem,
             RotaryHeadsGradients<Element>{DataOf<Element>(to_out), DataOf<Element>(to_content),
                                           to_content.stride(1), DataOf<Element>(to_rotary)});
    return {to_content, to_rotary, {}, {}};
  }

 private:
  static RotaryHeads<Element> ProblemOf(at::IntArrayRef content, at::IntArrayRef rotary,
                                        const at::Tensor& rotations, std::int64_t heads) {
    RotaryHeads<Element> problem;
    problem.rows = content[0] * content[1];
    problem.positions = content[1];
    problem.heads = static_cast<int>(heads);
    problem.width = static_cast<int>(content[2] / heads);
    problem.rotary_width = static_cast<int>(2 * rotations.size(-1));
    problem.shared = rotary[2] == problem.rotary_width;
    problem.rotations = at::view_as_real(rotations).data_ptr<float>();
    return problem;
  }
};

}  // namespace

at::Tensor TurnPairs(const at::Tensor& x, const at::Tensor& rotations) {
  // LibTorch's complex numbers have parts of at least 32 bits.
  const at::Tensor wide = Widened(x);
  const at::Tensor pairs =
      at::view_as_complex(wide.reshape({x.size(0), x.size(1), x.size(2), x.size(3) / 2, 2}));
  return at::view_as_real(pairs * rotations).flatten(3).to(x.scalar_type());
}

at::Tensor RotaryHeadsPlainly(const at::Tensor& content, const at::Tensor& rotary,
                              const at::Tensor& rotations, std::int64_t heads) {
  const std::int64_t width = 2 * rotations.size(-1);
  const auto by_head = [&](const at::Tensor& x, std::int64_t count) {
    return x.view({x.size(0), x.size(1), count, x.size(2) / count});
  };
  const at::Tensor turned = TurnPairs(by_head(rotary, rotary.size(2) / width), rotations);
  return at::cat(
      {by_head(content, heads), turned.expand({turned.size(0), turned.size(1), heads, width})}, 3);
}

at::Tensor RotaryHeadsOf(const at::Tensor& content, const at::Tensor& rotary,
                         const at::Tensor& rotations, std::int64_t heads) {
  if (!KernelsTake(content)) return RotaryHeadsPlainly(content, rotary, rotations, heads);
  return InTypeOf(content, [&](auto element) {
    return FusedRotaryHeads<decltype(element)>::apply(content, rotary, rotations, heads);
  });
}

}  // namespace pelab::trainer
