#include "worker/trainer/model/torch_compat.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <dlfcn.h>
#include <torch/version.h>

#include <cstdlib>
#include <fstream>
#include <mutex>

#include "worker/trainer/protocol/error.h"

namespace pelab::trainer {
namespace {

// OpenBLAS built with its own threads does not follow OpenMP's setting.
void SetBlasThreads(int threads) {
  using SetThreads = void (*)(int);
  if (auto* set = reinterpret_cast<SetThreads>(dlsym(RTLD_DEFAULT, "openblas_set_num_threads"))) {
    set(threads);
  }
}

std::string CpuName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    const auto colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "CPU";
}

// Through the driver's library, so that no CUDA header is needed to build.
std::string CudaName(int ordinal) {
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY);
  if (driver == nullptr) return "CUDA device";
  const auto init = reinterpret_cast<int (*)(unsigned)>(dlsym(driver, "cuInit"));
  const auto get = reinterpret_cast<int (*)(int*, int)>(dlsym(driver, "cuDeviceGet"));
  const auto name = reinterpret_cast<int (*)(char*, int, int)>(dlsym(driver, "cuDeviceGetName"));
  int device = 0;
  char text[256] = "";
  if (init == nullptr || get == nullptr || name == nullptr || init(0) != 0 ||
      get(&device, ordinal) != 0 || name(text, sizeof text, device) != 0) {
    return "CUDA device";
  }
  return text;
}

int Ordinal(const std::string& device) { return std::atoi(device.c_str() + 5); }

}  // namespace

std::string LibTorchVersion() { return TORCH_VERSION; }

int CudaDevices() {
  if (!at::globalContext().hasCUDA()) return 0;
  return static_cast<int>(at::detail::getCUDAHooks().getNumGPUs());
}

void RequireDevice(const std::string& name) {
  if (name == "cpu" || Ordinal(name) < CudaDevices()) return;
  throw TrainerError(ErrorKind::kBadSpec, "device " + name + " is not here: LibTorch " +
                                              LibTorchVersion() + " sees " +
                                              std::to_string(CudaDevices()) + " CUDA devices");
}

std::string DeviceName(const std::string& device) {
  return device == "cpu" ? CpuName() : CudaName(Ordinal(device));
}

void ConfigureDeterminism(int threads) {
  // cuBLAS is deterministic only with a fixed workspace, which it reads from here.
  setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", 0);
  static std::once_flag once;
  std::call_once(once, [] { at::set_num_interop_threads(1); });
  at::set_num_threads(threads);
  SetBlasThreads(threads);
  at::globalContext().setDeterministicAlgorithms(true, false);
  at::globalContext().setBenchmarkCuDNN(false);
  at::globalContext().setAllowTF32CuBLAS(false);
  at::globalContext().setAllowTF32CuDNN(false);
}

void SeedDevice(const std::string& device, std::uint64_t seed) {
  auto generator = at::globalContext().defaultGenerator(at::Device(device));
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_current_seed(seed);
}

}  // namespace pelab::trainer
