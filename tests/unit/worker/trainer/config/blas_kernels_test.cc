// OpenBLAS's kernels in a program that has begun as trainers do.
#include "worker/trainer/config/blas_kernels.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace pelab::trainer {
namespace {

#if defined(__x86_64__)
TEST(BlasKernels, AreThoseOfTheProcessor) {
  using CoreName = const char* (*)();
  const auto core_name = reinterpret_cast<CoreName>(dlsym(RTLD_DEFAULT, "openblas_get_corename"));
  const bool told = std::getenv(kBlasKernelsVariable) != nullptr;
  if (core_name == nullptr || told || !__builtin_cpu_supports("avx2"))
    GTEST_SKIP() << "there is nothing to choose";
  // An OpenBLAS that does not know the processor takes one of these.
  for (const char* const old : {"Prescott", "Nehalem", "Sandybridge", "Barcelona"}) {
    EXPECT_NE(std::string(core_name()), old);
  }
}
#endif

}  // namespace
}  // namespace pelab::trainer
