#include "worker/trainer/protocol/files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <iostream>
#include <sstream>
#include <thread>
#include <utility>

#include "core/base/sha256.h"
#include "worker/trainer/protocol/error.h"
#include "worker/trainer/protocol/stop.h"

namespace pelab::trainer {
namespace {

[[noreturn]] void ThrowIo(const std::string& what, const std::filesystem::path& path) {
  throw TrainerError(ErrorKind::kIo, what + " " + path.string() + ": " + std::strerror(errno));
}

std::string& FilesFolder() {
  static auto* const folder = new std::string;
  return *folder;
}

// Closes its descriptor when it goes out of scope.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

// A full disk does not fail a run: the trainer waits for space, so that computed results are not
// lost, until a stop is requested. Returns whether to try again.
bool WaitForRoom(const std::filesystem::path& path) {
  if (errno != ENOSPC || StopRequested()) return false;
  std::cerr << "no space left for " << path.string() << "; waiting for room\n";
  std::this_thread::sleep_for(std::chrono::seconds(1));
  return !StopRequested();
}

int OpenWhenThereIsRoom(const std::filesystem::path& path) {
  for (;;) {
    const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd >= 0 || !WaitForRoom(path)) return fd;
  }
}

void WriteAndSync(const std::filesystem::path& path, std::string_view contents) {
  const Descriptor file(OpenWhenThereIsRoom(path));
  if (file.get() < 0) ThrowIo("cannot create", path);
  while (!contents.empty()) {
    const ssize_t written = write(file.get(), contents.data(), contents.size());
    if (written < 0 && (errno == EINTR || WaitForRoom(path))) continue;
    if (written < 0) ThrowIo("cannot write", path);
    contents.remove_prefix(static_cast<std::size_t>(written));
  }
  if (fsync(file.get()) != 0) ThrowIo("cannot sync", path);
}

}  // namespace

FileInfo WriteFileAtomically(const std::filesystem::path& directory, const std::string& name,
                             std::string_view contents) {
  const auto path = directory / name;
  const auto temporary = directory / (name + ".tmp");
  WriteAndSync(temporary, contents);
  if (rename(temporary.c_str(), path.c_str()) != 0) ThrowIo("cannot rename to", path);
  const auto parent = path.parent_path().empty() ? std::filesystem::path(".") : path.parent_path();
  const Descriptor folder(open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0 || fsync(folder.get()) != 0) ThrowIo("cannot sync", parent);
  return {name, Sha256Hex(contents), contents.size()};
}

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream contents;
  if (file) contents << file.rdbuf();
  if (!file) ThrowIo("cannot read", path);
  return contents.str();
}

SafetensorsFile ReadSafetensors(std::string_view text) {
  SafetensorsResult result = ParseSafetensors(text);
  if (result.problem.empty()) return std::move(result.file);
  throw TrainerError(ErrorKind::kIo, "malformed safetensors file: " + result.problem);
}

void UseFilesIn(const std::string& folder) { FilesFolder() = folder; }

std::string ReadNamedFile(const std::string& what, const std::string& sha256) {
  if (FilesFolder().empty()) {
    throw TrainerError(ErrorKind::kIo, what + ": its file " + sha256 +
                                           " is in a folder that was not given; allowed: --files "
                                           "DIR, the folder of the files that specs name");
  }
  std::string bytes;
  try {
    bytes = ReadFile(std::filesystem::path(FilesFolder()) / sha256);
  } catch (const TrainerError& error) {
    throw TrainerError(error.kind(), what + ": " + error.what());
  }
  const std::string found = Sha256Hex(bytes);
  if (found == sha256) return bytes;
  throw TrainerError(ErrorKind::kBadSpec, what + ": the file in --files has the SHA-256 " + found +
                                              "; allowed: " + sha256);
}

}  // namespace pelab::trainer
