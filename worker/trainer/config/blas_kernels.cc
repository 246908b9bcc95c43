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

// Null if OpenBLAS is not loaded, or lacks the function.
template <typename Function>
Function OfOpenBlas(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
}

bool HasOldCore() {
  const auto core_name = OfOpenBlas<const char* (*)()>("openblas_get_corename");
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

// The environment with one more variable, whose text is `setting`'s.
std::vector<char*> With(std::string& setting, char** environment) {
  std::vector<char*> all = {setting.data()};
  for (char** variable = environment; *variable != nullptr; ++variable) all.push_back(*variable);
  all.push_back(nullptr);
  return all;
}

// Lets OpenBLAS choose its kernels now, and once more with OPENBLAS_CORETYPE if they are old. It
// keeps its choice when it begins. If it lacks these functions, main restarts the process.
void ChooseKernels(char** environment) {
  const auto choose = OfOpenBlas<void (*)()>("gotoblas_dynamic_init");
  const auto forget = OfOpenBlas<void (*)()>("gotoblas_dynamic_quit");
  const char* const core = BestCore();
  std::string setting = std::string(kBlasKernelsVariable) + "=";
  if (choose == nullptr || forget == nullptr || core == nullptr ||
      HasVariable(environment, setting)) {
    return;
  }
  choose();
  if (!HasOldCore()) return;
  forget();
  setting += core;
  std::vector<char*> changed = With(setting, environment);
  char** const before = environ;
  environ = changed.data();
  choose();
  environ = before;
}

// "OPENBLAS_NUM_THREADS=1" if OpenBLAS would start a thread for each core when it is loaded: an
// OpenBLAS that uses OpenMP starts none. A process that has threads cannot be forked.
// ConfigureDeterminism sets the number that a job has.
std::string ThreadsToChoose(char** environment) {
  constexpr int kOwnThreads = 1;
  const auto parallel = OfOpenBlas<int (*)()>("openblas_get_parallel");
  const std::string setting = "OPENBLAS_NUM_THREADS=";
  if (parallel == nullptr || parallel() != kOwnThreads || HasVariable(environment, setting)) {
    return "";
  }
  return setting + "1";
}

// Runs before the libraries initialize themselves. LibTorch takes a third of a second for that,
// which a restart from main would spend twice. getenv and setenv do not work yet.
void PrepareOpenBlas(int, char** argv, char** environment) {
  std::string threads = ThreadsToChoose(environment);
  if (!threads.empty()) execve("/proc/self/exe", argv, With(threads, environment).data());
  ChooseKernels(environment);
}

__attribute__((section(".preinit_array"),
               used)) void (*const prepare_open_blas)(int, char**, char**) = PrepareOpenBlas;
#endif

}  // namespace

void RestartWithBestBlasKernels(char** argv) {
  if (std::getenv(kBlasKernelsVariable) != nullptr || !HasOldCore()) return;
  const char* const core = BestCore();
  if (core == nullptr || setenv(kBlasKernelsVariable, core, 1) != 0) return;
  execv("/proc/self/exe", argv);  // if this fails, the slow kernels still give correct results
}

}  // namespace pelab::trainer
