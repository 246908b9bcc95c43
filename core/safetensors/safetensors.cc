#include "core/safetensors/safetensors.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/json_text.h"

namespace pelab {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kHeaderAlignment = 8;

struct TypeRow {
  DType dtype;
  const char* name;
  std::size_t bytes;
};
constexpr TypeRow kTypes[] = {
    {DType::kF64, "F64", 8},   {DType::kF32, "F32", 4}, {DType::kF16, "F16", 2},
    {DType::kBF16, "BF16", 2}, {DType::kI64, "I64", 8}, {DType::kI32, "I32", 4},
    {DType::kI16, "I16", 2},   {DType::kI8, "I8", 1},   {DType::kU64, "U64", 8},
    {DType::kU32, "U32", 4},   {DType::kU16, "U16", 2}, {DType::kU8, "U8", 1},
    {DType::kBool, "BOOL", 1}};

struct Malformed {
  std::string what;
};
[[noreturn]] void ThrowMalformed(std::string what) { throw Malformed{std::move(what)}; }

// For messages: the name or type, unless it is too long for one.
std::string QuotedName(const std::string& text) {
  constexpr std::size_t kMost = 200;
  return text.size() <= kMost ? "\"" + text + "\"" : "of " + std::to_string(text.size()) + " bytes";
}

// For messages: a number, or what the value is instead. Texts and lists may be long.
std::string Shown(const Json& value) {
  return value.is_number() ? value.dump() : std::string("a value of type ") + value.type_name();
}

const TypeRow& RowOf(DType dtype) { return kTypes[static_cast<std::size_t>(dtype)]; }

const TypeRow& RowOf(const std::string& name) {
  for (const TypeRow& row : kTypes) {
    if (name == row.name) return row;
  }
  ThrowMalformed("unknown type " + QuotedName(name));
}

// A list of sizes or offsets. They have at most 63 bits, so that they fit std::int64_t, too.
std::vector<std::int64_t> ReadIntegers(const std::string& tensor, const Json& entry,
                                       const char* member) {
  const Json& list = entry.at(member);
  if (!list.is_array()) {
    ThrowMalformed("tensor " + QuotedName(tensor) + ": \"" + member + "\" is not a list");
  }
  std::vector<std::int64_t> numbers;
  for (const Json& item : list) {
    const auto number = IntegerOf<std::int64_t>(item);
    if (!number || *number < 0) {
      ThrowMalformed("tensor " + QuotedName(tensor) + ": \"" + member + "\" holds " + Shown(item) +
                     "; allowed: integers from 0 to 2^63 - 1");
    }
    numbers.push_back(*number);
  }
  return numbers;
}

TensorEntry ReadEntry(const std::string& name, const Json& entry, std::string_view data) {
  const auto name_of_type = entry.at("dtype").get<std::string>();
  const TypeRow& type = RowOf(name_of_type);
  TensorEntry tensor{name, type.dtype, ReadIntegers(name, entry, "shape"), {}};
  const std::vector<std::int64_t> offsets = ReadIntegers(name, entry, "data_offsets");
  if (offsets.size() != 2) {
    ThrowMalformed("tensor " + QuotedName(name) + ": \"data_offsets\" has " +
                   std::to_string(offsets.size()) + " numbers; allowed: 2");
  }
  const auto begin = static_cast<std::uint64_t>(offsets[0]);
  const auto end = static_cast<std::uint64_t>(offsets[1]);
  if (begin > end || end > data.size())
    ThrowMalformed("tensor " + QuotedName(name) + " is cut off");
  std::uint64_t expected = type.bytes;
  for (const std::int64_t dimension : tensor.shape) {
    const auto size = static_cast<std::uint64_t>(dimension);
    if (size > 0 && expected > data.size() / size) {
      ThrowMalformed("tensor " + QuotedName(name) + " has an impossible shape");
    }
    expected *= size;
  }
  if (expected != end - begin)
    ThrowMalformed("tensor " + QuotedName(name) + " has another size than its shape");
  tensor.bytes = data.substr(begin, end - begin);
  return tensor;
}

SafetensorsFile Read(std::string_view text) {
  if (text.size() < 8) ThrowMalformed("shorter than its header size");
  std::uint64_t size = 0;
  for (int b = 0; b < 8; ++b) size |= std::uint64_t{static_cast<unsigned char>(text[b])} << (8 * b);
  if (size > kMaxSafetensorsHeader || size > text.size() - 8)
    ThrowMalformed("shorter than its header");
  const Json header = ParseJson<Json>(text.substr(8, size));
  if (!header.is_object()) ThrowMalformed("the header is no JSON object");
  const std::string_view data = text.substr(8 + size);
  SafetensorsFile file;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      file.metadata = entry.get<std::map<std::string, std::string>>();
    } else {
      file.tensors.push_back(ReadEntry(name, entry, data));
    }
  }
  return file;
}

}  // namespace

std::string_view NameOf(DType dtype) { return RowOf(dtype).name; }

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

SafetensorsResult ParseSafetensors(std::string_view text) {
  SafetensorsResult result;
  try {
    result.file = Read(text);
  } catch (const Malformed& malformed) {
    result.problem = malformed.what;
  } catch (const nlohmann::json::exception& error) {
    result.problem = error.what();
  }
  return result;
}

}  // namespace pelab
