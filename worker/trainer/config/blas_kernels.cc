#include "worker/trainer/config/blas_kernels.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace pelab::trainer {
namespace {

// OpenBLAS's kernels for x86-64 processors without AVX2, by the names that openblas_get_corename
// returns.
constexpr const char* kOldCores[] = {
    "Generic", "Katmai",       "Coppermine", "Northwood", "Prescott",   "Banias",
    "Core2",   "Penryn",       "Dunnington", "Atom",      "Nehalem",    "Athlon",
    "Opteron", "Opteron_SSE3", "Barcelona",  "Nano",      "Sandybridge"};

bool HasOldCore() {
  using CoreName = const char* (*)();
  const auto core_name = reinterpret_cast<CoreName>(dlsym(RTLD_DEFAULT, "openblas_get_corename"));
  if (core_name == nullptr) return false;
  for (const char* const old : kOldCores) {
    if (strcasecmp(core_name(), old) == 0) return true;
  }
  return false;
}

const char* BestCore() {
#if defined(__x86_64__) && defined(__GNUC__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    return "SkylakeX";
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "Haswell";
#endif
  return nullptr;
}

#if defined(__GLIBC__)
bool HasVariable(char** environment, const std::string& setting) {
  for (char** variable = environment; *variable != nullptr; ++variable) {
    if (strncmp(*variable, setting.c_str(), setting.size()) == 0) return true;
  }
  return false;
}

// OPENBLAS_CORETYPE and its value, if OpenBLAS should use other kernels. Empty if it should not, or
// if it lacks the function that chooses them; then main restarts the process.
std::string KernelsToChoose(char** environment) {
  const auto choose = reinterpret_cast<void (*)()>(dlsym(RTLD_DEFAULT, "gotoblas_dynamic_init"));
  const char* const core = BestCore();
  const std::string setting = std::string(kBlasKernelsVariable) + "=";
  if (choose == nullptr || core == nullptr || HasVariable(environment, setting)) return "";
  choose();
  return HasOldCore() ? setting + core : "";
}

// "OPENBLAS_NUM_THREADS=1" if OpenBLAS would start a thread for each core when it is loaded: an
// OpenBLAS that uses OpenMP starts none. A process that has threads cannot be forked.
// ConfigureDeterminism sets the number that a job has.
std::string ThreadsToChoose(char** environment) {
  constexpr int kOwnThreads = 1;
  const auto parallel = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "openblas_get_parallel"));
  const std::string setting = "OPENBLAS_NUM_THREADS=";
  if (parallel == nullptr || parallel() != kOwnThreads || HasVariable(environment, setting)) {
    return "";
  }
  return setting + "1";
}

// Restarts the process before its libraries initialize themselves: LibTorch takes a third of a
// second for that, which a restart from main would spend twice. getenv and setenv do not work yet.
void RestartBeforeLibrariesBegin(int, char** argv, char** environment) {
  std::string chosen[] = {KernelsToChoose(environment), ThreadsToChoose(environment)};
  std::vector<char*> changed;
  for (std::string& setting : chosen) {
    if (!setting.empty()) changed.push_back(setting.data());
  }
  if (changed.empty()) return;
  for (char** variable = environment; *variable != nullptr; ++variable) {
    changed.push_back(*variable);
  }
  changed.push_back(nullptr);
  execve("/proc/self/exe", argv, changed.data());
}

__attribute__((section(".preinit_array"), used)) void (*const restart_before_libraries_begin)(
    int, char**, char**) = RestartBeforeLibrariesBegin;
#endif

}  // namespace

void RestartWithBestBlasKernels(char** argv) {
  if (std::getenv(kBlasKernelsVariable) != nullptr || !HasOldCore()) return;
  const char* const core = BestCore();
  if (core == nullptr || setenv(kBlasKernelsVariable, core, 1) != 0) return;
  execv("/proc/self/exe", argv);  // if this fails, the slow kernels still give correct results
}

}  // namespace pelab::trainer
