// Plain functions that hide the differences between LibTorch 1.13 and 2.11 and between builds of
// one version. No LibTorch type appears here.
#pragma once

#include <cstdint>
#include <string>

namespace pelab::trainer {

std::string LibTorchVersion();  // "1.13.0"

// The number of CUDA devices that this build can use; 0 without CUDA.
int CudaDevices();

// Throws TrainerError(kBadSpec) if this build or host does not have the device. `name` is "cpu" or
// "cuda:N".
void RequireDevice(const std::string& name);

// If the environment variable PELAB_DEVICE_MEMORY_BYTES is set, limits tensors to that much of a
// CUDA device's memory; larger requests fail as out of memory. Throws TrainerError(kBadSpec) if the
// value is not a number of bytes.
void LimitDeviceMemory(const std::string& device);

// "NVIDIA H200", or the model name of the CPU.
std::string DeviceName(const std::string& device);

// Peak memory in bytes: of the tensors on a CUDA device, or of the whole process on the CPU.
std::int64_t PeakBytes(const std::string& device);

// Limits what this process may allocate on the host from now on to nine tenths of what is
// available, so that code of others that allocates without end fails and nothing else on the host
// does. A limit that is there already stays if it is lower.
void LimitHostMemory();

// The host memory, in bytes, that was still available when this process used the most. The estimate
// comes from the kernel and from the process's own limit (RLIMIT_AS); -1 if neither is known. Meant
// for reports of a failed allocation, which are made after everything was freed.
std::int64_t FreeHostBytesAtPeak();

// Fixes everything that could make two runs differ: the numbers of threads (LibTorch's own,
// OpenMP's and the BLAS library's), deterministic algorithms, no TF32. Call once, before the first
// tensor operation.
void ConfigureDeterminism(int threads);

}  // namespace pelab::trainer
