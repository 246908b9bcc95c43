#include "worker/trainer/operations/kernel_calls.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "worker/trainer/kernels/attention/attention_cpu.h"
#include "worker/trainer/kernels/dropout/dropout_mask.h"
#include "worker/trainer/kernels/norm/partial_sums.h"

#ifdef PELAB_CUDA_KERNELS
#include <c10/cuda/CUDAStream.h>

#include "worker/trainer/kernels/activation/bias_activation_cuda.h"
#include "worker/trainer/kernels/norm/residual_norm_cuda.h"
#include "worker/trainer/kernels/norm/rms_norm_cuda.h"
#include "worker/trainer/kernels/rotary/rotary_heads_cuda.h"
#endif

namespace pelab::trainer {
namespace {

constexpr std::int64_t kElementsPerTask = 1 << 15;
constexpr std::int64_t kHeadsPerTask = 16;

template <class Problem>
constexpr bool kIn32Bits = true;
template <template <class> class Problem>
constexpr bool kIn32Bits<Problem<Bf16>> = false;

bool plain_operations = false;  // set once, before threads start

// On a CPU: calls call(own, member, begin, end) for ranges of row blocks of every member. `own` is
// the member's part of the problem.
template <class Problem, typename Call>
void OverBlocks(const Problem& problem, const Call& call) {
  const std::int64_t blocks = NormBlocks(problem.rows);
  const std::int64_t grain =
      std::max<std::int64_t>(1, kElementsPerTask / (kNormBlockRows * problem.width));
  at::parallel_for(0, problem.members.count * blocks, grain,
                   [&](std::int64_t from, std::int64_t to) {
                     while (from < to) {
                       const std::int64_t member = from / blocks, first = member * blocks;
                       const std::int64_t stop = std::min(to, first + blocks);
                       Problem own = MemberOf(problem, member);
                       if constexpr (requires { own.dropout; }) own.dropout = WithKeys(own.dropout);
                       call(own, member, from - first, stop - first);
                       from = stop;
                     }
                   });
}

template <typename Call>
void OverRows(const RotaryHeads<float>& problem, const Call& call) {
  const std::int64_t elements = std::int64_t{problem.heads} * problem.HeadWidth();
  at::parallel_for(0, problem.rows, std::max<std::int64_t>(1, kElementsPerTask / elements), call);
}

template <typename Call>
void OverHeads(const FusedAttention<float>& problem, const Call& call) {
  // A task has whole sequences, because the heads of a sequence add to common sums by distance.
  const std::int64_t heads = problem.heads;
  at::parallel_for(0, problem.batch, (kHeadsPerTask + heads - 1) / heads,
                   [&](std::int64_t begin, std::int64_t end) { call(begin * heads, end * heads); });
}

// Calls on_cpu(problem), which is compiled for 32-bit floats only, or on_cuda(stream), which
// returns an error text or null.
template <class Problem, typename OnCpu, typename OnCuda>
void On(at::Device device, const Problem& problem, const OnCpu& on_cpu,
        [[maybe_unused]] const OnCuda& on_cuda) {
  if (device.is_cpu()) {
    if constexpr (kIn32Bits<Problem>) {
      return on_cpu(problem);
    } else {
      throw std::logic_error("a kernel of 16 bits on a CPU");
    }
  }
#ifdef PELAB_CUDA_KERNELS
  if (const KernelError error = on_cuda(c10::cuda::getCurrentCUDAStream(device.index()).stream())) {
    throw std::runtime_error(std::string("CUDA: ") + error);
  }
#else
  throw std::logic_error("this build has no kernels for " + device.str());
#endif
}

// For kernels that exist on CUDA only.
auto NotOnCpu() {
  return [](const auto&) { throw std::logic_error("a kernel of CUDA alone on a CPU"); };
}

}  // namespace

#ifdef PELAB_CUDA_KERNELS
#define PELAB_ON_CUDA(call) [&](CudaStream stream) { return call; }
#else
#define PELAB_ON_CUDA(call) nullptr
#endif

void UsePlainOperations() { plain_operations = true; }

bool KernelsTake(const at::Tensor& x) {
  if (plain_operations) return false;
  if (x.device().is_cpu()) return x.scalar_type() == at::kFloat;
#ifdef PELAB_CUDA_KERNELS
  return x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16;
#else
  return false;
#endif
}

bool NormFitsOn(at::Device device, std::int64_t width) {
#ifdef PELAB_CUDA_KERNELS
  if (!device.is_cpu()) return ResidualNormFitsCuda(width);
#endif
  return device.is_cpu() && width % kCpuLanes == 0;
}

template <class Element>
void Forward(at::Device device, const ResidualNorm<Element>& problem) {
  On(
      device, problem,
      [&](const auto& p) {
        OverBlocks(p, [](const auto& own, std::int64_t, std::int64_t begin, std::int64_t end) {
          ResidualNormForward(own, begin, end);
        });
      },
      PELAB_ON_CUDA(ResidualNormForwardOnCuda(problem, stream)));
}

template <class Element>
void Backward(at::Device device, const ResidualNorm<Element>& problem,
              const ResidualNormGradients<Element>& gradients) {
  On(
      device, problem,
      [&](const auto& p) {
        OverBlocks(p,
                   [&](const auto& own, std::int64_t member, std::int64_t begin, std::int64_t end) {
                     ResidualNormBackward(own, MemberOf(gradients, p, member), begin, end);
                   });
      },
      PELAB_ON_CUDA(ResidualNormBackwardOnCuda(problem, gradients, stream)));
}

void ReduceNorm(at::Device device, const float* partial, std::int64_t members, std::int64_t blocks,
                std::int64_t width, float* to_gamma, float* to_beta, float* to_bias) {
  On(
      device, partial,
      [&](const float*) {
        for (std::int64_t m = 0; m < members; ++m) {
          ResidualNormReduce(partial + m * blocks * 3 * width, blocks, width, to_gamma, to_beta,
                             to_bias);
          Advance(to_gamma, width);
          Advance(to_beta, width);
          Advance(to_bias, width);
        }
      },
      PELAB_ON_CUDA(ResidualNormReduceOnCuda(partial, members, blocks, width, to_gamma, to_beta,
                                             to_bias, stream)));
}

template <class Element>
void Forward(at::Device device, const RmsNorm<Element>& problem) {
  On(
      device, problem,
      [&](const auto& p) {
        OverBlocks(p, [](const auto& own, std::int64_t, std::int64_t begin, std::int64_t end) {
          RmsNormForward(own, begin, end);
        });
      },
      PELAB_ON_CUDA(RmsNormForwardOnCuda(problem, stream)));
}

template <class Element>
void Backward(at::Device device, const RmsNorm<Element>& problem,
              const RmsNormGradients<Element>& gradients) {
  On(
      device, problem,
      [&](const auto& p) {
        OverBlocks(p,
                   [&](const auto& own, std::int64_t member, std::int64_t begin, std::int64_t end) {
                     RmsNormBackward(own, MemberOf(gradients, p, member), begin, end);
                   });
      },
      PELAB_ON_CUDA(RmsNormBackwardOnCuda(problem, gradients, stream)));
}

template <class Element>
void Forward(at::Device device, const RotaryHeads<Element>& problem) {
  On(
      device, problem,
      [&](const auto& p) {
        OverRows(p,
                 [&](std::int64_t begin, std::int64_t end) { RotaryHeadsForward(p, begin, end); });
      },
      PELAB_ON_CUDA(RotaryHeadsForwardOnCuda(problem, stream)));
}

template <class Element>
void Backward(at::Device device, const RotaryHeads<Element>& problem,
              const RotaryHeadsGradients<Element>& gradients) {
  On(
      device, problem,
      [&](const auto& p) {
        OverRows(p, [&](std::int64_t begin, std::int64_t end) {
          RotaryHeadsBackward(p, gradients, begin, end);
        });
      },
      PELAB_ON_CUDA(RotaryHeadsBackwardOnCuda(problem, gradients, stream)));
}

bool ActivationFitsOn(at::Device device, [[maybe_unused]] std::int64_t rows, std::int64_t width) {
#ifdef PELAB_CUDA_KERNELS
  if (!device.is_cpu()) return BiasActivationFitsCuda(rows);
#endif
  return device.is_cpu() && width % kCpuLanes == 0;
}

template <class Element>
void Forward(at::Device device, const BiasActivation<Element>& problem) {
  On(
      device, problem,
      [&](const auto& p) {
        OverBlocks(p, [](const auto& own, std::int64_t, std::int64_t begin, std::int64_t end) {
          BiasActivationForward(own, begin, end);
        });
      },
      PELAB_ON_CUDA(BiasActivationForwardOnCuda(problem, stream)));
}

template <class Element>
void Backward(at::Device device, const BiasActivation<Element>& problem,
              const BiasActivationGradients<Element>& gradients) {
  On(
      device, problem,
      [&](const auto& p) {
        OverBlocks(p,
                   [&](const auto& own, std::int64_t member, std::int64_t begin, std::int64_t end) {
                     BiasActivationBackward(own, MemberOf(gradients, p, member), begin, end);
                   });
      },
      PELAB_ON_CUDA(BiasActivationBackwardOnCuda(problem, gradients, stream)));
}

template <class Element>
bool AttentionFitsOn(at::Device device, const FusedAttention<Element>& problem) {
  const bool turned = problem.query_rotations != nullptr || problem.key_rotations != nullptr;
  if (turned && problem.width % 2 != 0) return false;
  return device.is_cpu() ? problem.keys <= kMostCpuAttentionKeys : AttentionFits(problem);
}

template <class Element>
void Forward(at::Device device, const FusedAttention<Element>& problem) {
  On(
      device, problem,
      [&](const auto& p) {
        OverHeads(p,
                  [&](std::int64_t begin, std::int64_t end) { AttentionForward(p, begin, end); });
      },
      PELAB_ON_CUDA(AttentionForwardOnCuda(problem, stream)));
}

template <class Element>
void Backward(at::Device device, const FusedAttention<Element>& problem,
              const FusedAttentionGradients<Element>& gradients) {
  On(
      device, problem,
      [&](const auto& p) {
        OverHeads(p, [&](std::int64_t begin, std::int64_t end) {
          AttentionBackward(p, gradients, begin, end);
        });
      },
      PELAB_ON_CUDA(AttentionBackwardOnCuda(problem, gradients, stream)));
}

void SumRows(at::Device device, const float* partial, std::int64_t members, std::int64_t rows,
             std::int64_t columns, float* sums) {
  On(
      device, partial,
      [&](const float*) {
        for (std::int64_t m = 0; m < members; ++m) {
          SumPartials(partial + m * rows * columns, rows, columns, columns, sums + m * columns);
        }
      },
      PELAB_ON_CUDA(SumAttentionPartialsOnCuda(partial, members, rows, columns, sums, stream)));
}

void Update(at::Device device, const AdamWPass& pass) {
  On(
      device, pass,
      [&](const AdamWPass& p) {
        at::parallel_for(0, p.count, kElementsPerTask,
                         [&](std::int64_t begin, std::int64_t end) { AdamWOnCpu(p, begin, end); });
      },
      PELAB_ON_CUDA(AdamWOnCuda(pass, stream)));
}

bool HasCudaKernels() {
#ifdef PELAB_CUDA_KERNELS
  return !plain_operations;
#else
  return false;
#endif
}

template <class Element>
void ScoreAll(at::Device device, const CrossEntropy<Element>& problem) {
  On(device, problem, NotOnCpu(), PELAB_ON_CUDA(CrossEntropyOnCuda(problem, stream)));
}

void CountScored(at::Device device, const std::int64_t* labels,
                 [[maybe_unused]] std::int64_t members, [[maybe_unused]] std::int64_t rows,
                 [[maybe_unused]] std::int64_t ignored, [[maybe_unused]] std::int64_t* batch) {
  On(device, labels, NotOnCpu(),
     PELAB_ON_CUDA(CountScoredOnCuda(labels, members, rows, ignored, batch, stream)));
}

void BeginDropoutStep(at::Device device, const DropoutStep& step) {
  On(device, step, NotOnCpu(), PELAB_ON_CUDA(BeginDropoutStepOnCuda(step, stream)));
}

at::Tensor DropoutMaskOn(at::Device device, const DropoutStream& stream_of_place,
                         std::int64_t members, at::IntArrayRef shape) {
  at::Tensor mask = at::empty(shape, at::TensorOptions().dtype(at::kFloat).device(device));
  float* const out = mask.data_ptr<float>();
  const std::int64_t each = mask.numel() / members;
  On(
      device, stream_of_place,
      [&](const DropoutStream&) {
        for (std::int64_t m = 0; m < members; ++m) {
          const DropoutStream own = WithKeys(MemberOf(stream_of_place, m));
          at::parallel_for(0, each, kElementsPerTask, [&](std::int64_t begin, std::int64_t end) {
            FillDropoutMask(own, begin, end - begin, out + m * each + begin);
          });
        }
      },
      PELAB_ON_CUDA(FillDropoutMaskOnCuda(stream_of_place, members, each, out, stream)));
  return mask;
}

#define PELAB_INSTANTIATE(Element)                                                               \
  template void Forward(at::Device, const ResidualNorm<Element>&);                               \
  template void Backward(at::Device, const ResidualNorm<Element>&,                               \
                         const ResidualNormGradients<Element>&);                                 \
  template void Forward(at::Device, const RmsNorm<Element>&);                                    \
  template void Backward(at::Device, const RmsNorm<Element>&, const RmsNormGradients<Element>&); \
  template void Forward(at::Device, const RotaryHeads<Element>&);                                \
  template void Backward(at::Device, const RotaryHeads<Element>&,                                \
                         const RotaryHeadsGradients<Element>&);                                  \
  template void Forward(at::Device, const BiasActivation<Element>&);                             \
  template void Backward(at::Device, const BiasActivation<Element>&,                             \
                         const BiasActivationGradients<Element>&);                               \
  template void ScoreAll(at::Device, const CrossEntropy<Element>&);                              \
  template bool AttentionFitsOn(at::Device, const FusedAttention<Element>&);                     \
  template void Forward(at::Device, const FusedAttention<Element>&);                             \
  template void Backward(at::Device, const FusedAttention<Element>&,                             \
                         const FusedAttentionGradients<Element>&);
PELAB_INSTANTIATE(float)
PELAB_INSTANTIATE(Bf16)
#undef PELAB_INSTANTIATE

}  // namespace pelab::trainer
