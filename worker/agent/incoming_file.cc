#include "worker/agent/incoming_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/status.h"

namespace pelab::agent {

IncomingFile::IncomingFile(const ArtifactFile& file, std::string place, std::string temporary,
                           std::string source)
    : file_(file),
      place_(std::move(place)),
      temporary_(std::move(temporary)),
      source_(std::move(source)) {}

IncomingFile::~IncomingFile() { std::remove(temporary_.c_str()); }

absl::Status IncomingFile::Open() {
  PELAB_RETURN_IF_ERROR(RemoveAll(temporary_));
  PELAB_ASSIGN_OR_RETURN(fd_, OpenForAppend(temporary_));
  return absl::OkStatus();
}

absl::Status IncomingFile::Write(absl::string_view bytes) {
  written_ += bytes.size();
  if (written_ > file_.bytes) return NotWhatWasAsked();
  hash_.Update({bytes.data(), bytes.size()});
  return WriteAll(fd_.get(), bytes, temporary_);
}

absl::Status IncomingFile::Commit() {
  if (written_ != file_.bytes || hash_.FinishHex() != file_.sha256) return NotWhatWasAsked();
  if (fsync(fd_.get()) != 0) return ErrnoStatus(errno, absl::StrCat("cannot sync ", temporary_));
  if (std::rename(temporary_.c_str(), place_.c_str()) != 0) {
    return ErrnoStatus(errno, absl::StrCat("cannot rename to ", place_));
  }
  return FsyncDirectory(DirectoryOf(place_));
}

absl::Status IncomingFile::NotWhatWasAsked() const {
  return absl::DataLossError(absl::StrCat(source_, " sent ", written_, " bytes that are not the ",
                                          file_.bytes, " bytes with sha256 ", file_.sha256));
}

}  // namespace pelab::agent
