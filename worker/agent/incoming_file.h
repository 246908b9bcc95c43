// A file that comes piece by piece: beside its place until it is whole and of the right hash.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/base/sha256.h"
#include "core/base/unique_fd.h"
#include "worker/agent/artifact_transfer.h"

namespace pelab::agent {

// One thread. What is not committed leaves nothing behind.
class IncomingFile {
 public:
  // `place` is where it goes at the end, `temporary` where it is until then, both on one file
  // system; `file`, which must outlive it, says what it is to be, and `source` who sends it.
  IncomingFile(const ArtifactFile& file, std::string place, std::string temporary,
               std::string source);
  ~IncomingFile();
  IncomingFile(const IncomingFile&) = delete;

  absl::Status Open();
  // DATA_LOSS where it is longer than it may be.
  absl::Status Write(absl::string_view bytes);
  // Durably in its place when this is OK; DATA_LOSS where it is not what it was to be.
  absl::Status Commit();

 private:
  absl::Status NotWhatWasAsked() const;

  const ArtifactFile& file_;
  const std::string place_;
  const std::string temporary_;
  const std::string source_;
  UniqueFd fd_;
  Sha256 hash_;
  std::uint64_t written_ = 0;
};

}  // namespace pelab::agent
