#include "client/options/sheet_file.h"

#include "core/base/file.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/claims/sheet_reader.h"
#include "core/rpc/sheet_document.h"
#include "core/rpc/sweep_document.h"

namespace pelab::client {

absl::StatusOr<SheetFile> SheetOf(const v1::SheetRow& row) {
  PELAB_ASSIGN_OR_RETURN(claims::BoundSheet bound,
                         rpc::BindSheetDocument(row.document(), row.sweep_document()));
  return SheetFile{.name = row.name(),
                   .document = row.document(),
                   .sweep_document = bound.sheet.sweep_file.empty() ? "" : row.sweep_document(),
                   .sha256 = row.sha256(),
                   .bound = std::move(bound)};
}

absl::StatusOr<SheetFile> LoadSheet(const std::string& path, std::string* file_in_error) {
  *file_in_error = path;
  PELAB_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, experiment::kMaxDocumentBytes));
  const claims::SheetResult read = claims::ReadSheet(text);
  if (!read.sheet) return rpc::ToStatus(read.violations);
  const claims::Sheet& sheet = *read.sheet;
  std::string document = sheet.sweep_document;
  std::string sweep_path = path;  // an inline sweep is in the sheet
  if (!sheet.sweep_file.empty()) {
    const bool absolute = sheet.sweep_file.front() == '/';
    sweep_path = absolute ? sheet.sweep_file : Concat(DirectoryOf(path), "/", sheet.sweep_file);
    const auto content = ReadFile(sweep_path, experiment::kMaxDocumentBytes);
    if (!content.ok()) {
      return rpc::ToStatus({{.line = sheet.sweep_place.line,
                             .column = sheet.sweep_place.column,
                             .path = "sweep",
                             .value = sheet.sweep_file,
                             .allowed = "a sweep file",
                             .message = std::string(content.status().message())}});
    }
    document = *content;
  }
  const experiment::SweepResult sweep = claims::ParseSweepOf(sheet, document);
  if (!sweep.sweep) {
    *file_in_error = sweep_path;
    return rpc::ToStatus(sweep.violations);
  }
  claims::BindResult bound = claims::Bind(sheet, *sweep.sweep);
  if (!bound.bound) return rpc::ToStatus(bound.violations);
  return SheetFile{.name = path,
                   .document = text,
                   .sweep_document = sheet.sweep_file.empty() ? "" : document,
                   .sha256 = claims::HashOf(text, document),
                   .bound = *std::move(bound.bound)};
}

}  // namespace pelab::client
