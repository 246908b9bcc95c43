// A file of data of one's own in the making, for tests: tensors by name, and metadata.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/safetensors/safetensors.h"

namespace pelab {

// The type with this many bytes. Tests name kBool and kBF16 themselves.
template <typename Number>
constexpr DType DTypeOf() {
  if (std::is_floating_point_v<Number>) return sizeof(Number) == 4 ? DType::kF32 : DType::kF64;
  constexpr bool kSigned = std::is_signed_v<Number>;
  if (sizeof(Number) == 1) return kSigned ? DType::kI8 : DType::kU8;
  if (sizeof(Number) == 2) return kSigned ? DType::kI16 : DType::kU16;
  if (sizeof(Number) == 4) return kSigned ? DType::kI32 : DType::kU32;
  return kSigned ? DType::kI64 : DType::kU64;
}

struct DataFile {
  struct Tensor {
    DType dtype;
    std::vector<std::int64_t> shape;
    std::string bytes;
  };
  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::string> metadata;

  template <typename Number>
  void Set(const std::string& name, std::vector<std::int64_t> shape,
           const std::vector<Number>& values, DType dtype = DTypeOf<Number>()) {
    std::string bytes(values.size() * sizeof(Number), '\0');
    if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
    tensors[name] = {dtype, std::move(shape), std::move(bytes)};
  }

  std::string Bytes() const {
    SafetensorsFile file{metadata, {}};
    for (const auto& [name, tensor] : tensors) {
      file.tensors.push_back({name, tensor.dtype, tensor.shape, tensor.bytes});
    }
    return WriteSafetensors(file);
  }
};

// A safetensors file with this header, whatever it says, and this data.
inline std::string WithHeader(const std::string& header, const std::string& data = "") {
  std::string text;
  for (int b = 0; b < 8; ++b) text += static_cast<char>(header.size() >> (8 * b));
  return text + header + data;
}

// Six examples of four tokens: rows 0, 2 and 3 are the training split, the others are the test
// split. Most labels of the training split are 1 (two of three), one of three of the test split.
inline DataFile SmallData() {
  DataFile file;
  file.Set<std::int32_t>("tokens", {6, 4},
                         {1, 2, 3, 4, 5, 6, 7, 1, 2, 2, 2, 2, 3, 1, 3, 1, 4, 4, 1, 1, 6, 5, 4, 3});
  file.Set<std::int32_t>("targets", {6}, {1, 0, 1, 0, 1, 0});
  file.Set<std::int32_t>("split", {6}, {0, 1, 0, 0, 1, 1});
  return file;
}

// The same tokens with a target for each position; -1 says that a position has none.
//
//   row  split  length  targets
//   0    train  4       2  -1   0   2
//   1    test   2       0   2  (9  9)    beyond the length, so these do not count
//   2    train  4      -1  -1   1  -1
//   3    train  3       2   1  -1  (7)
//   4    test   4      -1   2  -1   1
//   5    test   1       1  (0   0   0)
//
// Training: 0 once, 1 twice, 2 three times. Test: 0 once, 1 twice, 2 twice.
inline DataFile SmallDataByPosition() {
  DataFile file = SmallData();
  file.Set<std::int32_t>("targets", {6, 4}, {2, -1, 0,  2, 0,  2, 9,  9, -1, -1, 1, -1,
                                             2, 1,  -1, 7, -1, 2, -1, 1, 1,  0,  0, 0});
  file.Set<std::int32_t>("lengths", {6}, {4, 2, 4, 3, 4, 1});
  return file;
}

}  // namespace pelab
