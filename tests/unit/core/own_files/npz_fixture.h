// NumPy archives in the making: arrays in the format of numpy.lib.format, packed by libzip.
#pragma once

#include <gtest/gtest.h>
#include <zip.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace pelab::own_files {

// The bytes of a .npy file. `shape` is Python's: "()", "(6,)", "(6, 4)".
inline std::string Npy(const std::string& type, const std::string& shape, const std::string& data,
                       const char* fortran_order = "False", int version = 1) {
  const std::size_t start = version == 1 ? 10 : 12;
  std::string header =
      "{'descr': '" + type + "', 'fortran_order': " + fortran_order + ", 'shape': " + shape + ", }";
  while ((start + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  std::string bytes = "\x93NUMPY";
  bytes += static_cast<char>(version);
  bytes += '\0';
  for (std::size_t i = 8; i < start; ++i) {
    bytes += static_cast<char>(header.size() >> (8 * (i - 8)));
  }
  return bytes + header + data;
}

template <typename Number>
std::string RawBytes(const std::vector<Number>& numbers) {
  std::string bytes(numbers.size() * sizeof(Number), '\0');
  if (!bytes.empty()) std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

// Texts as arrays of the type <U`width` hold them.
inline std::string Utf32(const std::vector<std::u32string>& texts, std::size_t width) {
  std::vector<char32_t> codes;
  for (std::u32string text : texts) {
    text.resize(width, U'\0');
    codes.insert(codes.end(), text.begin(), text.end());
  }
  return RawBytes(codes);
}

using Entries = std::vector<std::pair<std::string, std::string>>;  // names and bytes

// Writes a zip archive and returns its path.
inline std::string WriteZip(const std::string& path, const Entries& entries,
                            bool deflated = false) {
  int code = 0;
  zip_t* archive = zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code);
  for (const auto& [name, bytes] : entries) {
    const zip_int64_t at = zip_file_add(
        archive, name.c_str(), zip_source_buffer(archive, bytes.data(), bytes.size(), 0), 0);
    zip_set_file_compression(archive, static_cast<zip_uint64_t>(at),
                             deflated ? ZIP_CM_DEFLATE : ZIP_CM_STORE, 0);
  }
  EXPECT_EQ(zip_close(archive), 0);
  return path;
}

inline std::string WriteBytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

inline std::string BytesIn(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace pelab::own_files
