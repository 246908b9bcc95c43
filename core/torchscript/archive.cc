#include "core/torchscript/archive.h"

#include <zip.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "core/base/file.h"
#include "core/base/hashing.h"
#include "core/base/regular_file.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/base/unique_fd.h"
#include "core/experiment/declaration.h"

namespace pelab::torchscript {
namespace {

struct CloseArchive {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
struct CloseEntry {
  void operator()(zip_file_t* file) const { zip_fclose(file); }
};
using Archive = std::unique_ptr<zip_t, CloseArchive>;

constexpr std::string_view kWriteOne = "pelab.save_encoding in Python writes a file of an encoding";

absl::Status Refused(const std::string& path, std::string_view why) {
  return absl::InvalidArgumentError(Concat(path, ": ", why));
}

// The entries of an archive that matter here. All entries lie in one folder, whose name does not.
struct Contents {
  zip_int64_t declaration = -1;
  std::uint64_t declaration_bytes = 0;
  bool code = false;
};

// The name of an entry without its first folder; TorchScript names that folder after the file.
std::string_view Inside(std::string_view name) {
  const std::size_t slash = name.find('/');
  return slash == std::string_view::npos ? "" : name.substr(slash + 1);
}

std::string TooManyEntries(std::uint64_t entries) {
  return Concat("the archive has ", entries, " entries; at most ", kMaxEntries, " are allowed");
}

// Each entry has a header with this signature. libzip takes memory for every one of them before it
// says how many there are, so they are counted first. Data may hold the signature by chance, but
// not ten thousand times.
absl::Status CountHeaders(const std::string& path) {
  constexpr std::string_view kSignature = "PK\1\2";
  PELAB_ASSIGN_OR_RETURN(const UniqueFd fd, OpenRegularFile(ResolveLinks(path)));
  std::uint64_t found = 0;
  std::string tail;  // of the piece before
  PELAB_RETURN_IF_ERROR(ReadPieces(fd.get(), path, [&](const std::string& piece) {
    const std::string text = tail + piece;
    for (std::size_t at = text.find(kSignature); at != std::string::npos;
         at = text.find(kSignature, at + 1)) {
      ++found;
    }
    tail = text.substr(text.size() - std::min(text.size(), kSignature.size() - 1));
    return absl::OkStatus();
  }));
  return found <= kMaxEntries ? absl::OkStatus() : Refused(path, TooManyEntries(found));
}

absl::StatusOr<Contents> List(zip_t* archive, const std::string& path) {
  const zip_int64_t entries = zip_get_num_entries(archive, 0);
  if (entries > kMaxEntries) {
    return Refused(path, TooManyEntries(static_cast<std::uint64_t>(entries)));
  }
  Contents contents;
  std::uint64_t unpacked = 0;
  for (zip_int64_t i = 0; i < entries; ++i) {
    zip_stat_t info;
    constexpr zip_uint64_t kNeeded = ZIP_STAT_NAME | ZIP_STAT_SIZE;
    if (zip_stat_index(archive, i, 0, &info) != 0 || (info.valid & kNeeded) != kNeeded) {
      return Refused(path, "an entry of the archive cannot be read");
    }
    if (info.size > kMaxUnpackedBytes || (unpacked += info.size) > kMaxUnpackedBytes) {
      return Refused(path, Concat("the archive unpacks to more than ", kMaxUnpackedBytes,
                                  " bytes, the most allowed"));
    }
    const std::string_view name = Inside(info.name);
    if (name.starts_with("code/")) contents.code = true;
    if (name != Concat("extra/", experiment::kDeclarationName)) continue;
    if (contents.declaration >= 0) return Refused(path, "the archive has two declarations");
    contents.declaration = i;
    contents.declaration_bytes = info.size;
  }
  if (!contents.code) {
    return Refused(path,
                   Concat("the archive has no code, so it is no TorchScript file; ", kWriteOne));
  }
  if (contents.declaration < 0) {
    return Refused(path, Concat("the TorchScript file has no declaration (",
                                experiment::kDeclarationName, "); ", kWriteOne));
  }
  if (contents.declaration_bytes > experiment::kMaxDeclarationBytes) {
    return Refused(path,
                   Concat("the declaration has ", contents.declaration_bytes, " bytes; at most ",
                          experiment::kMaxDeclarationBytes, " are allowed"));
  }
  return contents;
}

absl::StatusOr<std::string> Unpack(zip_t* archive, const Contents& contents,
                                   const std::string& path) {
  const std::unique_ptr<zip_file_t, CloseEntry> file(
      zip_fopen_index(archive, static_cast<zip_uint64_t>(contents.declaration), 0));
  if (file == nullptr) return Refused(path, "the declaration cannot be read");
  std::string text(contents.declaration_bytes + 1, '\0');
  std::size_t read = 0;
  while (read < text.size()) {
    const zip_int64_t got = zip_fread(file.get(), text.data() + read, text.size() - read);
    if (got < 0) return Refused(path, "the declaration cannot be read: the archive is damaged");
    if (got == 0) break;
    read += static_cast<std::size_t>(got);
  }
  if (read != contents.declaration_bytes) {
    return Refused(path, "the declaration has another size than the archive says");
  }
  text.resize(read);
  return text;
}

absl::StatusOr<Archive> Open(const std::string& path) {
  int code = 0;
  Archive archive(zip_open(path.c_str(), ZIP_RDONLY | ZIP_CHECKCONS, &code));
  if (archive != nullptr) return archive;
  return Refused(
      path, Concat("this is no TorchScript file: no zip archive, or a damaged one; ", kWriteOne));
}

}  // namespace

absl::StatusOr<experiment::OwnEncoding> ReadEncodingFile(const std::string& path) {
  PELAB_RETURN_IF_ERROR(CheckRegularFile(path, "a file of an encoding"));
  PELAB_ASSIGN_OR_RETURN(const FileHash hash, Sha256File(path));
  if (hash.bytes > experiment::kMaxEncodingBytes) {
    return Refused(path, Concat("the file has ", hash.bytes, " bytes; at most ",
                                experiment::kMaxEncodingBytes, " are allowed"));
  }
  PELAB_RETURN_IF_ERROR(CountHeaders(path));
  PELAB_ASSIGN_OR_RETURN(const Archive archive, Open(path));
  PELAB_ASSIGN_OR_RETURN(const Contents contents, List(archive.get(), path));
  PELAB_ASSIGN_OR_RETURN(const std::string text, Unpack(archive.get(), contents, path));
  experiment::OwnEncodingResult read = experiment::ParseOwnEncoding(text);
  if (!read.problem.empty()) return Refused(path, read.problem);
  read.encoding.sha256 = hash.sha256;
  read.encoding.bytes = hash.bytes;
  return std::move(read.encoding);
}

}  // namespace pelab::torchscript
