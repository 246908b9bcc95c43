// OpenBLAS chooses its kernels by the processor's model number when it is loaded. A release that is
// older than the processor falls back to SSE3 kernels, several times slower than what the processor
// can do; the environment variable OPENBLAS_CORETYPE overrides that, but only from before the
// program starts.
#pragma once

namespace pelab::trainer {

// If OpenBLAS is loaded, has fallen back to kernels older than AVX2 and this processor has AVX2 or
// AVX-512: replaces the process by itself (same process id, same descriptors) with
// OPENBLAS_CORETYPE set. Does nothing where the variable is set already. Call first in main.
void RestartWithBestBlasKernels(char** argv);

}  // namespace pelab::trainer
