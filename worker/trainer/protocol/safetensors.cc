#include "worker/trainer/protocol/safetensors.h"

#include <nlohmann/json.hpp>

#include "core/base/json_text.h"
#include "worker/trainer/limits.h"
#include "worker/trainer/protocol/error.h"

namespace pelab::trainer {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kHeaderAlignment = 8;

struct TypeRow {
  DType dtype;
  const char* name;
  std::size_t bytes;
};
constexpr TypeRow kTypes[] = {{DType::kF32, "F32", 4},
                              {DType::kI32, "I32", 4},
                              {DType::kI64, "I64", 8},
                              {DType::kU8, "U8", 1}};

[[noreturn]] void ThrowMalformed(const std::string& what) {
  throw TrainerError(ErrorKind::kIo, "malformed safetensors file: " + what);
}

TypeRow RowOf(DType dtype) {
  for (const TypeRow& row : kTypes) {
    if (row.dtype == dtype) return row;
  }
  ThrowMalformed("unknown type");
}

TypeRow RowOf(const std::string& name) {
  for (const TypeRow& row : kTypes) {
    if (name == row.name) return row;
  }
  ThrowMalformed("unknown type \"" + name + "\"");
}

TensorEntry ReadEntry(const std::string& name, const Json& entry, std::string_view data) {
  const TypeRow type = RowOf(entry.at("dtype").get<std::string>());
  TensorEntry tensor{name, type.dtype, entry.at("shape").get<std::vector<std::int64_t>>(), {}};
  const auto begin = entry.at("data_offsets").at(0).get<std::uint64_t>();
  const auto end = entry.at("data_offsets").at(1).get<std::uint64_t>();
  if (begin > end || end > data.size()) ThrowMalformed("tensor \"" + name + "\" is cut off");
  std::uint64_t expected = type.bytes;
  for (const std::int64_t size : tensor.shape) {
    if (size < 0 || (size > 0 && expected > data.size())) {
      ThrowMalformed("tensor \"" + name + "\" has an impossible shape");
    }
    expected *= static_cast<std::uint64_t>(size);
  }
  if (expected != end - begin)
    ThrowMalformed("tensor \"" + name + "\" has another size than its shape");
  tensor.bytes = data.substr(begin, end - begin);
  return tensor;
}

}  // namespace

const TensorEntry* SafetensorsFile::Find(std::string_view name) const {
  for (const TensorEntry& tensor : tensors) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

std::string WriteSafetensors(const SafetensorsFile& file) {
  Json header = Json::object();
  if (!file.metadata.empty()) header["__metadata__"] = file.metadata;
  std::uint64_t offset = 0;
  for (const TensorEntry& tensor : file.tensors) {
    header[tensor.name] = {{"dtype", RowOf(tensor.dtype).name},
                           {"shape", tensor.shape},
                           {"data_offsets", {offset, offset + tensor.bytes.size()}}};
    offset += tensor.bytes.size();
  }
  std::string text = header.dump();
  text.resize((text.size() + kHeaderAlignment - 1) / kHeaderAlignment * kHeaderAlignment, ' ');
  std::string out;
  out.reserve(8 + text.size() + offset);
  for (int b = 0; b < 8; ++b) out += static_cast<char>(text.size() >> (8 * b));
  out += text;
  for (const TensorEntry& tensor : file.tensors) out += tensor.bytes;
  return out;
}

SafetensorsFile ReadSafetensors(std::string_view text) {
  if (text.size() < 8) ThrowMalformed("shorter than its header size");
  std::uint64_t size = 0;
  for (int b = 0; b < 8; ++b) size |= std::uint64_t{static_cast<unsigned char>(text[b])} << (8 * b);
  if (size > limits::kSafetensorsHeaderBytes || size > text.size() - 8)
    ThrowMalformed("shorter than its header");
  const Json header = ParseJson<Json>(text.substr(8, size));
  if (!header.is_object()) ThrowMalformed("the header is no JSON object");
  const std::string_view data = text.substr(8 + size);
  SafetensorsFile file;
  try {
    for (const auto& [name, entry] : header.items()) {
      if (name == "__metadata__") {
        file.metadata = entry.get<std::map<std::string, std::string>>();
      } else {
        file.tensors.push_back(ReadEntry(name, entry, data));
      }
    }
  } catch (const nlohmann::json::exception& error) {
    ThrowMalformed(error.what());
  }
  return file;
}

}  // namespace pelab::trainer
