// OpenBLAS's kernels in a program that has begun as trainers do.
#include "worker/trainer/config/blas_kernels.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace pelab::trainer {
namespace {

#if defined(__x86_64__)
TEST(BlasKernels, AreNotOldOnANewProcessor) {
  using CoreName = const char* (*)();
  const auto core_name = reinterpret_cast<CoreName>(dlsym(RTLD_DEFAULT, "openblas_get_corename"));
  const std::string core = core_name == nullptr ? "of another library" : core_name();
  const bool asked_for = std::getenv(kBlasKernelsVariable) != nullptr;
  // An OpenBLAS that does not know the processor takes one of these.
  for (const char* const old : {"Prescott", "Nehalem", "Sandybridge", "Barcelona"}) {
    EXPECT_TRUE(core != old || asked_for || !__builtin_cpu_supports("avx2")) << core;
  }
}
#endif

}  // namespace
}  // namespace pelab::trainer
