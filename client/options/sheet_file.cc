#include "client/options/sheet_file.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/file.h"
#include "core/base/json_text.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/claims/sheet_reader.h"
#include "core/rpc/sheet_document.h"
#include "core/rpc/sweep_document.h"

namespace pelab::client {
namespace {

// Reads the files of own encodings and data that the document names, and adds their declarations to
// it.
absl::StatusOr<std::vector<OwnFile>> TakeOwnFiles(const std::string& path, std::string* document) {
  google::protobuf::RepeatedPtrField<v1::Override> declared;
  PELAB_ASSIGN_OR_RETURN(std::vector<OwnFile> files, ReadOwnFiles(*document, path, &declared));
  if (files.empty()) return files;
  if (document->find_first_not_of(" \t\r\n") == document->find('{')) {
    return absl::InvalidArgumentError(
        "a sheet's sweep that names files must have its keys on lines of their own, not in "
        "braces");
  }
  document->append("\nfiles:\n");
  for (const v1::Override& override : declared) {
    document->append(Concat("  ", nlohmann::json(FileOfOverride(override)).dump(), ": ",
                            override.value(), "\n"));
  }
  return files;
}

// The same for the inline sweep of the sheet `text`. `document` is this sweep as JSON.
absl::StatusOr<std::vector<OwnFile>> TakeInlineFiles(const std::string& path,
                                                     const std::string& text,
                                                     std::string* document) {
  std::vector<OwnFile> files;
  const experiment::YamlResult yaml = experiment::ParseYaml(text, "document");
  google::protobuf::RepeatedPtrField<v1::Override> declared;
  for (const experiment::YamlMember& member : yaml.root->members) {
    if (member.key->text != "sweep") continue;
    PELAB_ASSIGN_OR_RETURN(files, ReadOwnFilesOf(*member.value, "sweep.", path, &declared));
  }
  if (files.empty()) return files;
  nlohmann::json sweep = ParseJson(*document);
  nlohmann::json& known = sweep["files"];
  if (!known.is_object()) known = nlohmann::json::object();
  for (const v1::Override& override : declared) {
    known[FileOfOverride(override)] = ParseJson(override.value());
  }
  *document = sweep.dump();
  return files;
}

}  // namespace

std::string SentSweepDocument(const claims::Sheet& sheet, const std::string& sweep_document) {
  return sweep_document == sheet.sweep_document ? "" : sweep_document;
}

absl::StatusOr<SheetFile> SheetOf(const v1::SheetRow& row) {
  PELAB_ASSIGN_OR_RETURN(claims::BoundSheet bound,
                         rpc::BindSheetDocument(row.document(), row.sweep_document()));
  std::string sweep_document = SentSweepDocument(bound.sheet, row.sweep_document());
  return SheetFile{.name = row.name(),
                   .document = row.document(),
                   .sweep_document = std::move(sweep_document),
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
  std::vector<OwnFile> own_files;
  std::string sweep_path = path;  // an inline sweep is in the sheet
  if (sheet.sweep_file.empty()) {
    PELAB_ASSIGN_OR_RETURN(own_files, TakeInlineFiles(path, text, &document));
  } else {
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
    *file_in_error = sweep_path;
    PELAB_ASSIGN_OR_RETURN(own_files, TakeOwnFiles(sweep_path, &document));
    *file_in_error = path;
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
                   .sweep_document = SentSweepDocument(sheet, document),
                   .sha256 = claims::HashOf(text, document),
                   .bound = *std::move(bound.bound),
                   .own_files = std::move(own_files)};
}

}  // namespace pelab::client
