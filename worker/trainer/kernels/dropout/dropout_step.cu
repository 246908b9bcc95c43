#include "worker/trainer/kernels/dropout/dropout_step_kernels.cuh"
#include "worker/trainer/kernels/launch.cuh"

namespace pelab::trainer {

KernelError BeginDropoutStepOnCuda(const DropoutStep& step, CudaStream stream) {
  DropoutStepKernel<kDropoutThreads>
      <<<MemberGrid(1, {step.members}), kDropoutThreads, 0, stream>>>(step);
  return LaunchError();
}

KernelError FillDropoutMaskOnCuda(const DropoutStream& stream_of_place, std::int64_t members,
                                  std::int64_t count, float* mask, CudaStream stream) {
  if (count == 0) return nullptr;
  const auto fill = [&](auto kernel, int a_thread) {
    kernel<<<MemberGrid(BlocksFor(count, a_thread * kDropoutThreads), {members}), kDropoutThreads,
             0, stream>>>(stream_of_place, count, mask);
  };
  if (RowsAligned<float>(members == 1 ? kMaskVector : count, mask)) {
    fill(DropoutMaskKernel<kMaskVector>, kMaskVector);
  } else {
    fill(DropoutMaskKernel<1>, 1);
  }
  return LaunchError();
}

}  // namespace pelab::trainer
