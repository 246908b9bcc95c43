// Reads what the TorchScript file of an own encoding declares. TorchScript files are zip archives;
// nothing in them is run, and no LibTorch is needed. Thread-safe.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "core/experiment/own_encoding.h"

namespace pelab::torchscript {

// The declaration with the file's SHA-256 and size. The file may come from anybody: it must be a
// regular file of at most experiment::kMaxEncodingBytes, a zip archive whose entries together
// unpack to at most kMaxUnpackedBytes, with code, with exactly one declaration. NOT_FOUND if there
// is no file, INVALID_ARGUMENT with a sentence that names the path if it is none of that.
absl::StatusOr<experiment::OwnEncoding> ReadEncodingFile(const std::string& path);

inline constexpr std::size_t kMaxUnpackedBytes = 256 << 20;
inline constexpr int kMaxEntries = 10'000;

}  // namespace pelab::torchscript
