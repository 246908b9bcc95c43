#include "worker/trainer/parameters/torch_compat.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <dlfcn.h>
#include <sys/resource.h>
#include <torch/version.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <mutex>

#include "worker/trainer/protocol/error.h"

#ifdef PELAB_CUDA_KERNELS
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDACachingAllocator.h>
#endif

namespace pelab::trainer {
namespace {

// An OpenBLAS that was built with its own threads ignores OpenMP's setting.
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

// The value, in bytes, of a line "NAME 123 kB" in a file of the kernel; -1 if there is no such
// line.
std::int64_t KernelFigure(const char* file_name, const std::string& name) {
  std::ifstream file(file_name);
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(name, 0) == 0) return std::atoll(line.c_str() + name.size()) * 1024;
  }
  return -1;
}

// Asks the driver's library, so that the build needs no CUDA header.
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

void LimitDeviceMemory(const std::string& device) {
  const char* const text = std::getenv("PELAB_DEVICE_MEMORY_BYTES");
  if (text == nullptr || *text == 0 || device == "cpu") return;
  char* end = nullptr;
  const double bytes = std::strtod(text, &end);
  if (*end != 0 || !(bytes > 0)) {
    throw TrainerError(ErrorKind::kBadSpec, std::string("PELAB_DEVICE_MEMORY_BYTES is \"") + text +
                                                "\"; allowed: a number of bytes from 1");
  }
#ifdef PELAB_CUDA_KERNELS
  const int ordinal = Ordinal(device);
  const auto whole = static_cast<double>(at::cuda::getDeviceProperties(ordinal)->totalGlobalMem);
  c10::cuda::CUDACachingAllocator::setMemoryFraction(std::min(1.0, bytes / whole),
                                                     static_cast<c10::DeviceIndex>(ordinal));
#endif
}

std::string DeviceName(const std::string& device) {
  return device == "cpu" ? CpuName() : CudaName(Ordinal(device));
}

std::int64_t PeakBytes([[maybe_unused]] const std::string& device) {
#ifdef PELAB_CUDA_KERNELS
  if (device != "cpu") {
    return c10::cuda::CUDACachingAllocator::getDeviceStats(
               static_cast<c10::DeviceIndex>(Ordinal(device)))
        .allocated_bytes[0]
        .peak;
  }
#endif
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024;
}

void LimitHostMemory() {
  // RLIMIT_DATA counts memory that the process can write. The address space, which RLIMIT_AS
  // counts, is far larger with a GPU.
  const std::int64_t used = KernelFigure("/proc/self/status", "VmData:");
  const std::int64_t available = KernelFigure("/proc/meminfo", "MemAvailable:");
  rlimit limit{};
  if (used < 0 || available < 0 || getrlimit(RLIMIT_DATA, &limit) != 0) return;
  const auto most = static_cast<rlim_t>(used + available / 10 * 9);
  if (limit.rlim_cur <= most) return;
  limit.rlim_cur = most;
  (void)setrlimit(RLIMIT_DATA, &limit);
}

std::int64_t FreeHostBytesAtPeak() {
  const std::int64_t resident = KernelFigure("/proc/self/status", "VmRSS:");
  const std::int64_t most_resident = KernelFigure("/proc/self/status", "VmHWM:");
  const std::int64_t available = KernelFigure("/proc/meminfo", "MemAvailable:");
  std::int64_t free =
      available < 0 ? -1 : available - std::max<std::int64_t>(0, most_resident - resident);
  rlimit limit{};
  const std::int64_t mapped = KernelFigure("/proc/self/status", "VmPeak:");
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && mapped >= 0) {
    const std::int64_t left = static_cast<std::int64_t>(limit.rlim_cur) - mapped;
    free = free < 0 ? left : std::min(free, left);
  }
  return free;
}

void ConfigureDeterminism(int threads) {
  // cuBLAS is deterministic only with a fixed workspace. It reads the setting from this variable.
  setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", 0);
  static std::once_flag once;
  std::call_once(once, [] { at::set_num_interop_threads(1); });
  at::set_num_threads(threads);
  SetBlasThreads(threads);
  at::globalContext().setDeterministicAlgorithms(true, false);
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 2)
  // With this setting on, LibTorch would fill every new tensor first. The trainer never reads
  // memory that it has not written.
  at::globalContext().setDeterministicFillUninitializedMemory(false);
#endif
  at::globalContext().setBenchmarkCuDNN(false);
  at::globalContext().setAllowTF32CuBLAS(false);
  at::globalContext().setAllowTF32CuDNN(false);
}

}  // namespace pelab::trainer
