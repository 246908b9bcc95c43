#include "worker/trainer/kernels/adamw/adamw_kernels.cuh"
#include "worker/trainer/kernels/launch.cuh"

namespace pelab::trainer {

KernelError AdamWOnCuda(const AdamWPass& pass, CudaStream stream) {
  if (pass.count == 0) return nullptr;
  if (RowsAligned<float>(4, pass.parameters, pass.gradient, pass.first, pass.second,
                         pass.rounded)) {
    AdamWKernel<4><<<BlocksFor(pass.count, 4 * kAdamWThreads), kAdamWThreads, 0, stream>>>(pass);
  } else {
    AdamWKernel<1><<<BlocksFor(pass.count, kAdamWThreads), kAdamWThreads, 0, stream>>>(pass);
  }
  return LaunchError();
}

}  // namespace pelab::trainer
