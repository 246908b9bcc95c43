#include "worker/agent/checkpoint_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/base/json_text.h"
#include "core/base/regular_file.h"
#include "core/base/status.h"
#include "core/base/unique_fd.h"
#include "worker/agent/limits.h"

namespace pelab::agent {
namespace {

constexpr std::size_t kLengthBytes = 8;

// Reads exactly `size` bytes at `offset`; false if the file is shorter.
bool ReadExactly(int fd, std::uint64_t offset, std::size_t size, std::string* data) {
  data->resize(size);
  std::size_t got = 0;
  while (got < size) {
    const ssize_t part =
        pread(fd, data->data() + got, size - got, static_cast<off_t>(offset + got));
    if (part < 0 && errno == EINTR) continue;
    if (part <= 0) return false;
    got += static_cast<std::size_t>(part);
  }
  return true;
}

}  // namespace

absl::StatusOr<CheckpointFile> ReadCheckpointFile(const std::string& path) {
  PELAB_ASSIGN_OR_RETURN(const UniqueFd fd, OpenRegularFile(path));
  const absl::Status damaged = absl::DataLossError(absl::StrCat(path, " is not a checkpoint"));
  std::string length;
  if (!ReadExactly(fd.get(), 0, kLengthBytes, &length)) return damaged;
  std::uint64_t size = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i) {
    size |= std::uint64_t{static_cast<unsigned char>(length[i])} << (8 * i);
  }
  std::string header;
  if (size > limits::kCheckpointHeaderBytes || !ReadExactly(fd.get(), kLengthBytes, size, &header))
    return damaged;
  const auto json = ParseJson(header);
  try {
    const auto& metadata = json.at("__metadata__");
    CheckpointFile file;
    file.spec = metadata.at("spec").get<std::string>();
    if (absl::SimpleAtoi(metadata.at("epoch").get<std::string>(), &file.epoch) && file.epoch >= 0) {
      return file;
    }
  } catch (const nlohmann::json::exception&) {
  }
  return damaged;
}

}  // namespace pelab::agent
