// Whole files, written so that a crash leaves the old one or the new one and never half of either.
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

// Writes `contents` to directory/name: temporary file, fsync, rename, fsync of the directory. Throws TrainerError(kIo).
FileInfo WriteFileAtomically(const std::filesystem::path& directory, const std::string& name,
                             std::string_view contents);

// The whole file. Throws TrainerError(kIo).
std::string ReadFile(const std::filesystem::path& path);

}  // namespace pelab::trainer
