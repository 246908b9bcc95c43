// Emulates the functions of worker/trainer/kernels/intrinsics.cuh, with the fragment layouts of the
// PTX ISA. cuda_emulation.h includes this file.
#pragma once

#include <cstdint>
#include <source_location>

#include "tests/support/cuda_emulation.h"

namespace pelab::trainer {

void MmaBf16(float (&sum)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
             std::source_location where = std::source_location::current());
void LoadMatrix4(std::uint32_t (&to)[4], const void* row,
                 std::source_location where = std::source_location::current());
void LoadMatrix4Transposed(std::uint32_t (&to)[4], const void* row,
                           std::source_location where = std::source_location::current());
std::uint32_t PackBf16(float low, float high);
float Exp2(float x);
float Log2(float x);
inline float4 LoadShared4Again(const float* at) { return *reinterpret_cast<const float4*>(at); }

}  // namespace pelab::trainer
