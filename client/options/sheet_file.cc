#include "client/options/sheet_file.h"

#include "core/base/file.h"
#include "core/base/sha256.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/claims/sheet_reader.h"
#include "core/rpc/sweep_document.h"

namespace pelab::client {

absl::StatusOr<SheetFile> LoadSheet(const std::string& path, std::string* file_in_error) {
  *file_in_error = path;
  PELAB_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, experiment::kMaxDocumentBytes));
  const claims::SheetResult read = claims::ReadSheet(text);
  if (!read.sheet) return rpc::ToStatus(read.violations);
  const claims::Sheet& sheet = *read.sheet;
  std::string sweep = sheet.sweep_document;
  if (!sheet.sweep_file.empty()) {
    const bool absolute = sheet.sweep_file.front() == '/';
    const std::string sweep_path =
        absolute ? sheet.sweep_file : Concat(DirectoryOf(path), "/", sheet.sweep_file);
    const auto document = ReadFile(sweep_path, experiment::kMaxDocumentBytes);
    if (!document.ok()) {
      return rpc::ToStatus({{.line = sheet.sweep_place.line,
                             .column = sheet.sweep_place.column,
                             .path = "sweep",
                             .value = sheet.sweep_file,
                             .allowed = "a sweep file",
                             .message = std::string(document.status().message())}});
    }
    sweep = *document;
    const auto parsed = rpc::ParseSweepDocument(sweep, {});
    if (!parsed.ok()) {
      *file_in_error = sweep_path;
      return parsed.status();
    }
  }
  claims::BindResult bound = claims::Bind(sheet, sweep);
  if (!bound.bound) return rpc::ToStatus(bound.violations);
  return SheetFile{.sha256 = Sha256Hex(text + std::string(1, '\0') + sweep),
                   .bound = *std::move(bound.bound)};
}

}  // namespace pelab::client
