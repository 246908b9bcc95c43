#include "tests/support/cuda_emulation_intrinsics.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>

#include "tests/support/cuda_emulation.h"
#include "worker/trainer/kernels/bf16.h"

namespace pelab::trainer {
namespace {

constexpr std::uint32_t kWholeWarp = 0xffffffffU;

std::int64_t tensor_flop = 0;

float Half(std::uint32_t pair, int which) {
  return ToFloat(Bf16{static_cast<std::uint16_t>(pair >> (16 * which))});
}

struct Product {
  float* sum;
  const std::uint32_t* a;
  const std::uint32_t* b;
};

// Layout from the PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type". With g =
// lane / 4 and t = lane % 4, register r holds
//   - of A: row g + 8 (r % 2), columns 2t and 2t + 1 (+ 8 if r >= 2);
//   - of B: rows 2t and 2t + 1 (+ 8 r), column g;
//   - of the sum: row g + 8 (r / 2), column 2t + r % 2.
float A(void* const lanes[32], int row, int k) {
  const auto* const lane = static_cast<const Product*>(lanes[row % 8 * 4 + k % 8 / 2]);
  return Half(lane->a[row / 8 + k / 8 * 2], k % 2);
}
float B(void* const lanes[32], int k, int column) {
  const auto* const lane = static_cast<const Product*>(lanes[column * 4 + k % 8 / 2]);
  return Half(lane->b[k / 8], k % 2);
}

void Multiply(void* const lanes[32], std::uint32_t /*mask*/) {
  tensor_flop += std::int64_t{2} * 16 * 8 * 16;
  float a[16][16], b[16][8];
  for (int k = 0; k < 16; ++k) {
    for (int row = 0; row < 16; ++row) a[row][k] = A(lanes, row, k);
    for (int column = 0; column < 8; ++column) b[k][column] = B(lanes, k, column);
  }
  for (int row = 0; row < 16; ++row) {
    float sums[8] = {};
    for (int k = 0; k < 16; ++k) {
      for (int column = 0; column < 8; ++column) sums[column] += a[row][k] * b[k][column];
    }
    for (int column = 0; column < 8; ++column) {
      auto* const lane = static_cast<Product*>(lanes[row % 8 * 4 + column / 2]);
      lane->sum[row / 8 * 2 + column % 2] += sums[column];
    }
  }
}

struct MatrixLoad {
  std::uint32_t* to;
  const unsigned char* row;  // lane 8 i + r: row r of matrix i
};

template <bool kTransposed>
void Load(void* const lanes[32], std::uint32_t /*mask*/) {
  for (int lane = 0; lane < 32; ++lane) {
    for (int matrix = 0; matrix < 4; ++matrix) {
      std::uint32_t pair = 0;
      for (int half = 0; half < 2; ++half) {
        const int along = lane % 4 * 2 + half, across = lane / 4;
        const int row = kTransposed ? along : across, column = kTransposed ? across : along;
        std::uint16_t element = 0;
        std::memcpy(&element,
                    static_cast<const MatrixLoad*>(lanes[matrix * 8 + row])->row + 2 * column, 2);
        pair |= std::uint32_t{element} << (16 * half);
      }
      static_cast<MatrixLoad*>(lanes[lane])->to[matrix] = pair;
    }
  }
}

MatrixLoad LoadOf(std::uint32_t* to, const void* row) {
  if (reinterpret_cast<std::uintptr_t>(row) % 16 != 0) {
    throw std::invalid_argument("ldmatrix: a row that is not aligned to 16 bytes");
  }
  return {to, static_cast<const unsigned char*>(row)};
}

}  // namespace

void MmaBf16(float (&sum)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
             std::source_location where) {
  Product product{sum, a, b};
  cuda_emulation::WarpCollective("mma", kWholeWarp, &product, &Multiply, where);
}

void LoadMatrix4(std::uint32_t (&to)[4], const void* row, std::source_location where) {
  MatrixLoad load = LoadOf(to, row);
  cuda_emulation::WarpCollective("ldmatrix", kWholeWarp, &load, &Load<false>, where);
}

void LoadMatrix4Transposed(std::uint32_t (&to)[4], const void* row, std::source_location where) {
  MatrixLoad load = LoadOf(to, row);
  cuda_emulation::WarpCollective("ldmatrix.trans", kWholeWarp, &load, &Load<true>, where);
}

std::uint32_t PackBf16(float low, float high) {
  return ToBf16(low).bits | static_cast<std::uint32_t>(ToBf16(high).bits) << 16;
}

float Exp2(float x) { return std::exp2(x); }
float Log2(float x) { return std::log2(x); }

}  // namespace pelab::trainer

std::int64_t pelab::cuda_emulation::TakeTensorFlop() {
  return std::exchange(pelab::trainer::tensor_flop, 0);
}
