// Claim sheets given on the command line.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/options/own_files.h"
#include "core/claims/binding.h"
#include "pelab/v1/claims.pb.h"

namespace pelab::client {

struct SheetFile {
  std::string name;  // of the file
  std::string document;
  std::string sweep_document;  // SentSweepDocument
  std::string sha256;          // claims::HashOf both
  claims::BoundSheet bound;
  // Those that the sweep names. `sweep_document` then says what they declare, so that the hash of
  // the sheet is also that of their content.
  std::vector<OwnFile> own_files = {};
};

// Returns the sweep's document as it is registered beside the sheet. It is empty if the sweep is
// the sheet's inline one as it stands there.
std::string SentSweepDocument(const claims::Sheet& sheet, const std::string& sweep_document);

// The registered sheet that `row` holds, with its documents, as if it had been read from files.
absl::StatusOr<SheetFile> SheetOf(const v1::SheetRow& row);

// Reads a claim sheet and the sweep that it names, which is searched for beside the sheet. Errors
// are those of LoadDocument (document.h). `file_in_error` is the file that an error is about.
absl::StatusOr<SheetFile> LoadSheet(const std::string& path, std::string* file_in_error);

}  // namespace pelab::client
