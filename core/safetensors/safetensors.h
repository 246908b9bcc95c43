// The safetensors format: an 8-byte little-endian header size, a JSON header of {name: {dtype,
// shape, data_offsets}} and an optional "__metadata__" of strings, then the raw little-endian data.
// Python can read it with `safetensors.torch.load_file`.
//
// The trainer includes this header, so it needs no Abseil. Pure functions: thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace pelab {

inline constexpr std::size_t kMaxSafetensorsHeader =
    100'000'000;  // bytes; as the reference implementation

enum class DType { kF64, kF32, kF16, kBF16, kI64, kI32, kI16, kI8, kU64, kU32, kU16, kU8, kBool };
std::string_view NameOf(DType dtype);  // "F32"

// A tensor's name, type, shape and bytes. When writing, `bytes` refers to the caller's data; when
// reading, to the file's text.
struct TensorEntry {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape;
  std::string_view bytes;
};

struct SafetensorsFile {
  std::map<std::string, std::string> metadata;
  std::vector<TensorEntry> tensors;

  const TensorEntry* Find(std::string_view name) const;
};

// Returns the whole file as text. The tensors are stored in the given order.
std::string WriteSafetensors(const SafetensorsFile& file);

struct SafetensorsResult {
  SafetensorsFile file;  // views into the text, which must outlive it
  std::string problem;   // for people; empty if and only if `file` is valid
};
// Anything malformed is a problem: sizes that do not agree, offsets outside the data, an unknown
// type.
SafetensorsResult ParseSafetensors(std::string_view text);

}  // namespace pelab
