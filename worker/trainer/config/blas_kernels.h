// OpenBLAS chooses its kernels by the processor's model number when it is loaded. A release that is
// older than the processor falls back to SSE3 kernels, which are several times slower than the
// processor allows. The environment variable OPENBLAS_CORETYPE overrides this choice, but only if
// it is set before the program starts.
//
// An OpenBLAS with threads of its own (Debian's libopenblas0-pthread) starts them when it is
// loaded, unless OPENBLAS_NUM_THREADS says 1. A trainer must have one thread until it is forked.
#pragma once

namespace pelab::trainer {

inline constexpr char kBlasKernelsVariable[] = "OPENBLAS_CORETYPE";

// Restarts the process with OPENBLAS_CORETYPE set (same process id, same descriptors) if OpenBLAS
// is loaded, has fallen back to kernels older than AVX2, and this processor has AVX2 or AVX-512.
// Does nothing if the variable is already set. Call this first in main. Most programs that
// link this are restarted before main, and before their libraries have initialized themselves; they
// are restarted for OPENBLAS_NUM_THREADS too, unless it is set.
void RestartWithBestBlasKernels(char** argv);

}  // namespace pelab::trainer
