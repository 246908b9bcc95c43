// Claim sheets given on the command line.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "core/claims/binding.h"

namespace pelab::client {

struct SheetFile {
  std::string name;  // of the file
  std::string document;
  std::string sweep_document;  // of the file that it names; empty if its sweep is inline
  std::string sha256;          // claims::HashOf both
  claims::BoundSheet bound;
};

// Reads a claim sheet and the sweep that it names, which is searched for beside the sheet. Errors
// are those of LoadDocument (document.h). `file_in_error` is the file that an error is about.
absl::StatusOr<SheetFile> LoadSheet(const std::string& path, std::string* file_in_error);

}  // namespace pelab::client
