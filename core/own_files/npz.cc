#include "core/own_files/npz.h"

#include <zip.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/base/utf8.h"
#include "core/experiment/own_task.h"
#include "core/safetensors/safetensors.h"

namespace pelab::own_files {
namespace {

constexpr std::size_t kMaxArrays = 100;
constexpr std::size_t kMaxTextBytes = 1 << 20;  // of an array of texts
constexpr std::string_view kArrayEnd = ".npy";

struct CloseArchive {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
struct CloseEntry {
  void operator()(zip_file_t* file) const { zip_fclose(file); }
};
using Archive = std::unique_ptr<zip_t, CloseArchive>;

struct Array {
  std::string name;
  std::string type;  // NumPy's: "<i8", "<U5"
  std::vector<std::int64_t> shape;
  std::string_view bytes;

  std::int64_t elements() const {
    std::int64_t count = 1;
    for (const std::int64_t size : shape) count *= size;
    return count;
  }
  bool holds_text() const { return type.size() > 2 && (type[1] == 'U' || type[1] == 'S'); }
};

absl::Status Refused(std::string_view path, std::string_view why) {
  return absl::InvalidArgumentError(Concat(path, ": ", why));
}

absl::Status UnknownType(const Array& array, std::string_view path) {
  return Refused(path, Concat("the array ", array.name, " has the type ", array.type,
                              "; allowed: integers and texts"));
}

// Unpacking ----------------------------------------------------------------------------------

absl::StatusOr<std::string> Unpack(zip_t* archive, zip_uint64_t index, const std::string& path,
                                   const zip_stat_t& info) {
  const std::unique_ptr<zip_file_t, CloseEntry> file(zip_fopen_index(archive, index, 0));
  if (file == nullptr) return Refused(path, Concat("the array ", info.name, " cannot be read"));
  std::string bytes(info.size, '\0');
  std::size_t read = 0;
  while (read < bytes.size()) {
    const zip_int64_t got = zip_fread(file.get(), bytes.data() + read, bytes.size() - read);
    if (got <= 0) return Refused(path, Concat("the array ", info.name, " is damaged"));
    read += static_cast<std::size_t>(got);
  }
  // Only a read at the end compares the checksum.
  char more = 0;
  if (zip_fread(file.get(), &more, 1) != 0) {
    return Refused(path, Concat("the array ", info.name, " is damaged"));
  }
  return bytes;
}

// The value of 'key' in the header, a Python dictionary that NumPy writes: "{'descr': '<i8',
// 'fortran_order': False, 'shape': (2, 3), }".
std::string_view Value(std::string_view header, std::string_view key) {
  const std::size_t at = header.find(Concat("'", key, "':"));
  if (at == std::string_view::npos) return "";
  std::string_view rest = header.substr(at + key.size() + 3);
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  if (rest.starts_with('\'')) return rest.substr(1, rest.find('\'', 1) - 1);
  if (rest.starts_with('(')) return rest.substr(1, rest.find(')') - 1);
  return rest.substr(0, rest.find_first_of(",}"));
}

absl::StatusOr<std::vector<std::int64_t>> ShapeOf(std::string_view text, const std::string& path,
                                                  std::string_view name) {
  std::vector<std::int64_t> shape;
  while (!text.empty()) {
    if (text.front() == ' ' || text.front() == ',') {
      text.remove_prefix(1);
      continue;
    }
    std::int64_t size = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
    constexpr auto kMost = static_cast<std::int64_t>(experiment::kMaxTaskBytes);
    if (error != std::errc() || size < 0 || size > kMost || shape.size() == 8) {
      return Refused(path, Concat("the array ", name, " has a shape that cannot be read"));
    }
    shape.push_back(size);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  }
  return shape;
}

// How many bytes an element has; 0 if the type is none that can be converted.
std::size_t ElementBytes(std::string_view type) {
  if (type.size() < 3) return 0;
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(type.data() + 2, type.data() + type.size(), number);
  if (error != std::errc() || end != type.data() + type.size() || number > kMaxTextBytes) return 0;
  switch (type[1]) {
    case 'U':
      return 4 * number;
    case 'S':
    case 'i':
    case 'u':
    case 'f':
    case 'b':
      return number;
    default:
      return 0;
  }
}

absl::StatusOr<Array> ReadArray(std::string_view bytes, std::string name, const std::string& path) {
  constexpr std::string_view kMagic = "\x93NUMPY";
  if (bytes.size() < 12 || bytes.substr(0, kMagic.size()) != kMagic) {
    return Refused(path, Concat("the entry ", name, " is no NumPy array"));
  }
  const bool long_size = bytes[6] >= 2;  // the version of the format
  std::size_t size = 0, start = long_size ? 12 : 10;
  for (std::size_t i = 8; i < start; ++i) {
    size |= std::size_t{static_cast<unsigned char>(bytes[i])} << (8 * (i - 8));
  }
  if (size > bytes.size() - start) return Refused(path, Concat("the array ", name, " is cut off"));
  const std::string_view header = bytes.substr(start, size);
  Array array{.name = std::move(name), .type = std::string(Value(header, "descr"))};
  PELAB_ASSIGN_OR_RETURN(array.shape, ShapeOf(Value(header, "shape"), path, array.name));
  array.bytes = bytes.substr(start + size);
  const std::size_t each = ElementBytes(array.type);
  if (each == 0 || array.type[0] == '>') {
    return UnknownType(array, path);
  }
  if (Value(header, "fortran_order") == "True" && array.shape.size() > 1) {
    return Refused(path, Concat("the array ", array.name,
                                " is stored column by column; save numpy.ascontiguousarray of it"));
  }
  std::size_t left = array.bytes.size() / each;
  for (const std::int64_t one : array.shape) {
    if (one == 0) return Refused(path, Concat("the array ", array.name, " is empty"));
    left /= static_cast<std::size_t>(one);
  }
  // If `left` is 0, the number of elements may not even fit 64 bits.
  if (left == 0 || each * static_cast<std::size_t>(array.elements()) != array.bytes.size()) {
    return Refused(path, Concat("the array ", array.name, " has another size than its shape"));
  }
  return array;
}

// Converting -----------------------------------------------------------------------------------

void AppendUtf8(std::uint32_t code, std::string* text) {
  const auto add = [&](std::uint32_t byte) { *text += static_cast<char>(byte); };
  if (code < 0x80) return add(code);
  if (code < 0x800) {
    add(0xC0 | code >> 6);
  } else if (code < 0x10000) {
    add(0xE0 | code >> 12);
    add(0x80 | (code >> 6 & 0x3F));
  } else {
    add(0xF0 | (code >> 18 & 0x07));
    add(0x80 | (code >> 12 & 0x3F));
    add(0x80 | (code >> 6 & 0x3F));
  }
  add(0x80 | (code & 0x3F));
}

// The texts, with "?" for what is no character.
std::vector<std::string> TextsOf(const Array& array) {
  const std::size_t each = ElementBytes(array.type);
  std::vector<std::string> texts;
  for (std::size_t at = 0; at < array.bytes.size(); at += each) {
    const std::string_view raw = array.bytes.substr(at, each);
    if (array.type[1] == 'S') {
      texts.push_back(ValidUtf8(std::string(raw.substr(0, raw.find('\0')))));
      continue;
    }
    std::string text;
    for (std::size_t i = 0; i < raw.size(); i += 4) {
      std::uint32_t code = 0;
      std::memcpy(&code, raw.data() + i, sizeof code);
      if (code == 0) break;
      AppendUtf8(code, &text);
    }
    texts.push_back(ValidUtf8(std::move(text)));
  }
  return texts;
}

// `array` has one element of a type that TypeOf knows, but not F16.
std::string NumberText(const Array& array) {
  const auto as = [&](auto number) {
    std::memcpy(&number, array.bytes.data(), sizeof number);
    return nlohmann::json(number).dump();
  };
  const bool is_signed = array.type[1] == 'i';
  switch (ElementBytes(array.type)) {
    case 1:
      return is_signed ? as(std::int8_t{}) : as(std::uint8_t{});
    case 2:
      return is_signed ? as(std::int16_t{}) : as(std::uint16_t{});
    case 4:
      return array.type[1] == 'f' ? as(float{})
             : is_signed          ? as(std::int32_t{})
                                  : as(std::uint32_t{});
    default:
      return array.type[1] == 'f' ? as(double{})
             : is_signed          ? as(std::int64_t{})
                                  : as(std::uint64_t{});
  }
}

absl::StatusOr<DType> TypeOf(const Array& array, const std::string& path) {
  static const std::vector<std::pair<std::string_view, DType>> types = {
      {"f8", DType::kF64}, {"f4", DType::kF32}, {"f2", DType::kF16}, {"i8", DType::kI64},
      {"i4", DType::kI32}, {"i2", DType::kI16}, {"i1", DType::kI8},  {"u8", DType::kU64},
      {"u4", DType::kU32}, {"u2", DType::kU16}, {"u1", DType::kU8},  {"b1", DType::kBool}};
  for (const auto& [name, type] : types) {
    if (array.type.substr(1) == name) return type;
  }
  return UnknownType(array, path);
}

// A safetensors file in the making.
class Conversion {
 public:
  explicit Conversion(std::string path) : path_(std::move(path)) {}

  absl::Status Add(const Array& array) {
    if (!names_.insert(array.name).second) {
      return Refused(path_, Concat("the archive has two arrays ", array.name));
    }
    if (array.holds_text()) {
      if (array.bytes.size() > kMaxTextBytes && array.name != "split") {
        return Refused(path_, Concat("the texts of ", array.name, " have more than ", kMaxTextBytes,
                                     " bytes"));
      }
      if (array.name == "split") return AddSplit(array);
      const std::vector<std::string> texts = TextsOf(array);
      file_.metadata[array.name] =
          array.shape.empty() ? texts[0]
                              : nlohmann::json(texts).dump(
                                    -1, ' ', false, nlohmann::json::error_handler_t::replace);
      return absl::OkStatus();
    }
    PELAB_ASSIGN_OR_RETURN(const DType type, TypeOf(array, path_));
    if (!array.shape.empty()) {
      file_.tensors.push_back({array.name, type, array.shape, array.bytes});
      return absl::OkStatus();
    }
    if (type == DType::kF16) return UnknownType(array, path_);
    file_.metadata[array.name] = NumberText(array);
    return absl::OkStatus();
  }

  std::string Finish() {
    std::sort(file_.tensors.begin(), file_.tensors.end(),
              [](const TensorEntry& a, const TensorEntry& b) { return a.name < b.name; });
    return WriteSafetensors(file_);
  }

 private:
  // Names in the order of their first use.
  absl::Status AddSplit(const Array& array) {
    std::vector<std::string> names;
    for (const std::string& name : TextsOf(array)) {
      const auto found = std::find(names.begin(), names.end(), name);
      if (found == names.end() && names.size() == experiment::kMaxOwnSplits) {
        return Refused(
            path_, Concat("split has more than ", experiment::kMaxOwnSplits, " different names"));
      }
      split_ += static_cast<char>(found - names.begin());
      if (found == names.end()) names.push_back(name);
    }
    file_.metadata["splits"] =
        nlohmann::json(names).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    file_.tensors.push_back({"split", DType::kU8, array.shape, split_});
    return absl::OkStatus();
  }

  std::string path_;
  SafetensorsFile file_;
  std::set<std::string> names_;  // of all arrays so far
  std::string split_;            // the bytes of the tensor split
};

}  // namespace

absl::StatusOr<std::string> ConvertNpz(const std::string& path) {
  int code = 0;
  const Archive archive(zip_open(path.c_str(), ZIP_RDONLY | ZIP_CHECKCONS, &code));
  if (archive == nullptr) return Refused(path, "this is no NumPy archive, or a damaged one");
  const zip_int64_t entries = zip_get_num_entries(archive.get(), 0);
  if (entries > static_cast<zip_int64_t>(kMaxArrays)) {
    return Refused(
        path, Concat("the archive has ", entries, " arrays; at most ", kMaxArrays, " are allowed"));
  }
  std::size_t unpacked = 0;
  std::deque<std::string> kept;  // what the tensors refer to
  Conversion conversion(path);
  for (zip_int64_t i = 0; i < entries; ++i) {
    const auto index = static_cast<zip_uint64_t>(i);
    zip_stat_t info;
    constexpr zip_uint64_t kNeeded = ZIP_STAT_NAME | ZIP_STAT_SIZE;
    if (zip_stat_index(archive.get(), index, 0, &info) != 0 || (info.valid & kNeeded) != kNeeded) {
      return Refused(path, "an entry of the archive cannot be read");
    }
    if (info.size > experiment::kMaxTaskBytes ||
        (unpacked += info.size) > experiment::kMaxTaskBytes) {
      return Refused(path, Concat("the archive unpacks to more than ", experiment::kMaxTaskBytes,
                                  " bytes, the most allowed"));
    }
    std::string_view name = info.name;
    if (name.ends_with(kArrayEnd)) name.remove_suffix(kArrayEnd.size());
    PELAB_ASSIGN_OR_RETURN(kept.emplace_back(), Unpack(archive.get(), index, path, info));
    PELAB_ASSIGN_OR_RETURN(const Array array, ReadArray(kept.back(), std::string(name), path));
    PELAB_RETURN_IF_ERROR(conversion.Add(array));
  }
  return conversion.Finish();
}

}  // namespace pelab::own_files
