// Receives a file piece by piece. The pieces go to a temporary file until the file is complete and
// its hash matches.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/base/sha256.h"
#include "core/base/unique_fd.h"
#include "worker/agent/artifact_transfer.h"

namespace pelab::agent {

// For one thread. The destructor removes the temporary file, so that an uncommitted file leaves
// nothing behind.
class IncomingFile {
 public:
  // `place` is the final path and `temporary` the path until then; both must be on one file system.
  // `file` gives the expected size and hash and must outlive this object. `source` names the sender
  // in error messages.
  IncomingFile(const ArtifactFile& file, std::string place, std::string temporary,
               std::string source);
  ~IncomingFile();
  IncomingFile(const IncomingFile&) = delete;

  absl::Status Open();
  // DATA_LOSS if more bytes come than `file` announces.
  absl::Status Write(absl::string_view bytes);
  // On OK the file is durable at its final path. DATA_LOSS if its size or SHA-256 is not the
  // expected one.
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
