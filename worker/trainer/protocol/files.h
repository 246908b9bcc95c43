// Reads and writes whole files. After a crash a file has either its old or its new contents, never
// a part of them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "core/safetensors/safetensors.h"

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

// Returns views into `text`, which must outlive the result. Throws TrainerError(kIo) if anything is
// malformed.
SafetensorsFile ReadSafetensors(std::string_view text);

// Sets the folder of the files that specs name, each under its SHA-256 (--files). Call this before
// the first of them is read.
void UseFilesIn(const std::string& folder);
// Returns the file with this hash from that folder. `what` begins the messages: "encoding decay".
// Throws TrainerError: kIo if it cannot be read, kBadSpec if it is another file.
std::string ReadNamedFile(const std::string& what, const std::string& sha256);

}  // namespace pelab::trainer
