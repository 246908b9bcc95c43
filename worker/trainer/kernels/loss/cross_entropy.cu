#include "worker/trainer/kernels/launch.cuh"
#include "worker/trainer/kernels/loss/cross_entropy_kernels.cuh"

namespace pelab::trainer {

KernelError CountScoredOnCuda(const std::int64_t* labels, std::int64_t members, std::int64_t rows,
                              std::int64_t ignored, std::int64_t* batch, CudaStream stream) {
  CountScoredKernel<kTallyThreads>
      <<<MemberGrid(1, {members}), kTallyThreads, 0, stream>>>(labels, rows, ignored, batch);
  return LaunchError();
}

template <class Element>
KernelError CrossEntropyOnCuda(const CrossEntropy<Element>& problem, CudaStream stream) {
  if (problem.rows == 0) return nullptr;
  const Members members{problem.members};
  CrossEntropyKernel<<<MemberGrid(BlocksFor(problem.rows, kEntropyWarps), members), kEntropyThreads,
                       0, stream>>>(problem);
  if (problem.sums != nullptr) {
    TallyKernel<<<MemberGrid(1, members), kTallyThreads, 0, stream>>>(problem);
  }
  return LaunchError();
}

template KernelError CrossEntropyOnCuda(const CrossEntropy<float>&, CudaStream);
template KernelError CrossEntropyOnCuda(const CrossEntropy<Bf16>&, CudaStream);

}  // namespace pelab::trainer
