// What differs between LibTorch 1.13 and 2.11, or between builds of one version, behind plain functions. No LibTorch
// type appears here.
#pragma once

#include <cstdint>
#include <string>

namespace pelab::trainer {

std::string LibTorchVersion();  // "1.13.0"

// CUDA devices that this build can use; 0 without CUDA.
int CudaDevices();

// Throws TrainerError(kBadSpec) when this build or host has no such device. `name` is "cpu" or "cuda:N".
void RequireDevice(const std::string& name);

// Where the environment has PELAB_DEVICE_MEMORY_BYTES, tensors get no more than that of a CUDA device's memory; what is asked
// beyond is out of memory. Throws TrainerError(kBadSpec) for a value that is no number of bytes.
void LimitDeviceMemory(const std::string& device);

// "NVIDIA H200", or the CPU's model name.
std::string DeviceName(const std::string& device);

// The most memory that tensors have had on a CUDA device, or the whole process on the CPU: bytes.
std::int64_t PeakBytes(const std::string& device);

// What the host could still have given when this process had the most memory, as the kernel estimates it and the process's
// own limit allowed: bytes; -1 where nobody says. For reports of an allocation that failed, made after everything was freed.
std::int64_t FreeHostBytesAtPeak();

// Fixes everything that could change a result between two runs: thread counts (LibTorch's own, OpenMP's and the BLAS
// library's), deterministic algorithms, no TF32. Call once, before the first tensor operation.
void ConfigureDeterminism(int threads);

}  // namespace pelab::trainer
