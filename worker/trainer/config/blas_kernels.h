// OpenBLAS chooses its kernels by the processor's model number when it is loaded. A release that is
// older than the processor falls back to SSE3 kernels, which are several times slower than the
// processor allows. The environment variable OPENBLAS_CORETYPE overrides this choice, but only if
// OpenBLAS finds it when it chooses.
//
// An OpenBLAS with threads of its own (Debian's libopenblas0-pthread) starts them when it is
// loaded, unless OPENBLAS_NUM_THREADS says 1. A trainer must have one thread until it is forked.
//
// A program that links this asks OpenBLAS for its choice before main, before the libraries
// initialize themselves. If OpenBLAS has fallen back to kernels older than AVX2, and the processor
// has AVX2 or AVX-512, it chooses once more with the variable set. For OPENBLAS_NUM_THREADS, the
// process is restarted. Variables that are set already are obeyed.
#pragma once

namespace pelab::trainer {

inline constexpr char kBlasKernelsVariable[] = "OPENBLAS_CORETYPE";

// Restarts the process with OPENBLAS_CORETYPE set (same process id, same descriptors) if OpenBLAS
// still has old kernels, because it lacks the functions to choose again. Call this first in main.
void RestartWithBestBlasKernels(char** argv);

}  // namespace pelab::trainer
