// Reads and writes whole files. After a crash a file has either its old or its new contents, never
// a part of them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace pelab::trainer {

struct FileInfo {
  std::string name;  // relative to the work directory
  std::string sha256;
  std::uint64_t bytes = 0;
};

// Writes `contents` to directory/name: temporary file, fsync, rename, fsync of the directory. If
// the disk is full, waits for space until a stop is requested (stop.h). Throws TrainerError(kIo).
FileInfo WriteFileAtomically(const std::filesystem::path& directory, const std::string& name,
                             std::string_view contents);

// Returns the whole file. Throws TrainerError(kIo).
std::string ReadFile(const std::filesystem::path& path);

}  // namespace pelab::trainer
