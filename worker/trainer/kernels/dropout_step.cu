#include "worker/trainer/kernels/dropout_step_kernels.cuh"
#include "worker/trainer/kernels/launch.cuh"

namespace pelab::trainer {

KernelError BeginDropoutStepOnCuda(const DropoutStep& step, CudaStream stream) {
  DropoutStepKernel<kDropoutThreads><<<1, kDropoutThreads, 0, stream>>>(step);
  return LaunchError();
}

KernelError FillDropoutMaskOnCuda(const DropoutStream& stream_of_place, std::int64_t count,
                                  float* mask, CudaStream stream) {
  if (count == 0) return nullptr;
  if (RowsAligned<float>(kMaskVector, mask)) {
    DropoutMaskKernel<kMaskVector>
        <<<BlocksFor(count, kMaskVector * kDropoutThreads), kDropoutThreads, 0, stream>>>(
            stream_of_place, count, mask);
  } else {
    DropoutMaskKernel<1><<<BlocksFor(count, kDropoutThreads), kDropoutThreads, 0, stream>>>(
        stream_of_place, count, mask);
  }
  return LaunchError();
}

}  // namespace pelab::trainer
