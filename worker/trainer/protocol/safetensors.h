// The safetensors format: an 8-byte little-endian header size, a JSON header of {name: {dtype,
// shape, data_offsets}} and an optional "__metadata__" of strings, then the raw little-endian data.
// Python can read it with `safetensors.torch.load_file`.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace pelab::trainer {

enum class DType { kF32, kI32, kI64, kU8 };

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

// Returns views into `text`, which must outlive the result. Throws TrainerError(kIo) if anything is
// malformed: sizes that do not agree, offsets outside the data, an unknown type.
SafetensorsFile ReadSafetensors(std::string_view text);

}  // namespace pelab::trainer
