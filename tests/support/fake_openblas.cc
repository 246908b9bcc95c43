// Stands in for an OpenBLAS with threads of its own, with LD_PRELOAD. It says what such a library
// would read when it begins.
#include <cstdio>
#include <cstdlib>

extern "C" int openblas_get_parallel() { return 1; }  // OPENBLAS_THREAD

__attribute__((constructor)) static void Begin() {
  const char* const threads = std::getenv("OPENBLAS_NUM_THREADS");
  std::fprintf(stderr, "begins with %s\n", threads == nullptr ? "all cores" : threads);
}
