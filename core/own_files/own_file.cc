#include "core/own_files/own_file.h"

#include <sys/mman.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>

#include "core/base/file.h"
#include "core/base/regular_file.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/base/unique_fd.h"
#include "core/own_files/npz.h"
#include "core/safetensors/safetensors.h"
#include "core/torchscript/archive.h"

namespace pelab::own_files {
namespace {

constexpr char kConvertedName[] = "data.safetensors";

absl::Status Refused(const std::string& path, std::string_view why) {
  return absl::InvalidArgumentError(Concat(path, ": ", why));
}

// The first bytes of the file; fewer if it is shorter.
absl::StatusOr<std::string> Beginning(const std::string& path) {
  constexpr std::size_t kBytes = 4;
  PELAB_ASSIGN_OR_RETURN(const UniqueFd fd, OpenRegularFile(ResolveLinks(path)));
  std::string bytes;
  const absl::Status status = ReadPieces(fd.get(), path, [&](const std::string& piece) {
    bytes += piece.substr(0, kBytes - bytes.size());
    return bytes.size() < kBytes ? absl::OkStatus() : absl::CancelledError();
  });
  if (!status.ok() && !absl::IsCancelled(status)) return status;
  return bytes;
}

// A zip archive begins so, and a TorchScript file is one. A safetensors file begins with the size
// of its header, which is less.
absl::StatusOr<bool> IsArchive(const std::string& path) {
  PELAB_ASSIGN_OR_RETURN(const std::string bytes, Beginning(path));
  return bytes == "PK\3\4";
}

bool IsNpz(const std::string& path) {
  const auto archive = IsArchive(path);
  return path.ends_with(".npz") && archive.ok() && *archive;
}

// The bytes of a file of data, converted if need be. Sets the path and folder of `file`.
absl::StatusOr<std::string> BytesOfData(const std::string& path, OwnFile* file) {
  file->path = path;
  if (!IsNpz(path)) return ReadRegularFile(ResolveLinks(path), experiment::kMaxTaskBytes);
  PELAB_ASSIGN_OR_RETURN(std::string bytes, ConvertNpz(path));
  const std::string prefix = std::filesystem::temp_directory_path() / "pelab-data-";
  PELAB_ASSIGN_OR_RETURN(TemporaryFolder folder, TemporaryFolder::Make(prefix));
  file->folder = std::make_shared<TemporaryFolder>(std::move(folder));
  file->path = *file->folder / kConvertedName;
  PELAB_RETURN_IF_ERROR(WriteNewFile(file->path, bytes));
  return bytes;
}

}  // namespace

bool LooksLikeData(const std::string& path) {
  const auto archive = IsArchive(path);
  return path.ends_with(".safetensors") || path.ends_with(".npz") || (archive.ok() && !*archive);
}

absl::StatusOr<OwnData> ReadOwnData(const std::string& path) {
  PELAB_RETURN_IF_ERROR(CheckRegularFile(path, "a file of data"));
  OwnData read;
  PELAB_ASSIGN_OR_RETURN(const bool archive, IsArchive(path));
  if (archive && !path.ends_with(".npz")) {
    return Refused(path,
                   "this is an archive, not a safetensors file; the name of a NumPy archive "
                   "ends in .npz, and an encoding stands under pe");
  }
  PELAB_ASSIGN_OR_RETURN(const std::string bytes, BytesOfData(path, &read.file));
  if (bytes.starts_with("\x93NUMPY")) {
    return Refused(path,
                   "this is a single NumPy array; numpy.savez writes tokens, targets and split "
                   "into one file that ends in .npz");
  }
  TaskFileResult parsed = ParseTaskFile(bytes);
  if (!parsed.problem.empty()) return Refused(path, parsed.problem);
  experiment::OwnTask declared = parsed.file.declared;
  declared.sha256 = Sha256Hex(bytes);
  declared.bytes = bytes.size();
  read.file.declaration = std::move(declared);
  read.data = std::move(parsed.file);
  return read;
}

absl::StatusOr<OwnFile> ReadOwnEncoding(const std::string& path) {
  OwnFile file{.path = path, .declaration = {}};
  PELAB_ASSIGN_OR_RETURN(file.declaration, torchscript::ReadEncodingFile(path));
  return file;
}

absl::StatusOr<FileHash> CheckOwnFile(const std::string& path) {
  PELAB_ASSIGN_OR_RETURN(const bool archive, IsArchive(path));
  if (archive) {
    PELAB_ASSIGN_OR_RETURN(const experiment::OwnEncoding encoding,
                           torchscript::ReadEncodingFile(path));
    return FileHash{encoding.sha256, encoding.bytes};
  }
  PELAB_ASSIGN_OR_RETURN(const FileHash hash, Sha256File(path));
  if (hash.bytes < 8 || hash.bytes > experiment::kMaxTaskBytes) {
    return Refused(path, Concat("a file of data has ", hash.bytes, " bytes; allowed: 8 to ",
                                experiment::kMaxTaskBytes));
  }
  PELAB_ASSIGN_OR_RETURN(const UniqueFd fd, OpenRegularFile(ResolveLinks(path)));
  void* const mapped = mmap(nullptr, hash.bytes, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (mapped == MAP_FAILED) return absl::InternalError(Concat(path, ": cannot be mapped"));
  const SafetensorsResult read =
      ParseSafetensors(std::string_view(static_cast<const char*>(mapped), hash.bytes));
  const bool data = read.file.Find("tokens") != nullptr && read.file.Find("targets") != nullptr;
  munmap(mapped, hash.bytes);
  if (!read.problem.empty()) {
    return Refused(path,
                   Concat("this is neither a TorchScript nor a safetensors file: ", read.problem));
  }
  if (!data) return Refused(path, "the file has no tensors tokens and targets");
  return hash;
}

}  // namespace pelab::own_files
