#include "core/rpc/sheet_document.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/json_text.h"
#include "core/base/status.h"
#include "core/claims/sheet_reader.h"
#include "core/rpc/sweep_document.h"

namespace pelab::rpc {

absl::StatusOr<std::string> SweepDocumentOf(const claims::Sheet& sheet, const std::string& given) {
  if (!sheet.sweep_file.empty()) return given;
  nlohmann::json with_files = ParseJson(given);
  if (!with_files.is_object() || !with_files.contains("files")) return sheet.sweep_document;
  nlohmann::json inline_sweep = ParseJson(sheet.sweep_document);
  with_files.erase("files");
  inline_sweep.erase("files");
  if (with_files == inline_sweep) return given;
  return ToStatus({{.line = sheet.sweep_place.line,
                    .column = sheet.sweep_place.column,
                    .path = "sweep",
                    .value = "a map",
                    .allowed = "the sheet's sweep, with files added",
                    .message = "the sweep that came along with the sheet differs from the sheet's "
                               "in more than files"}});
}

absl::StatusOr<claims::BoundSheet> BindSheetDocument(const std::string& document,
                                                     const std::string& sweep_document) {
  const claims::SheetResult read = claims::ReadSheet(document);
  if (!read.sheet) return ToStatus(read.violations);
  PELAB_ASSIGN_OR_RETURN(const std::string of_sweep, SweepDocumentOf(*read.sheet, sweep_document));
  const experiment::SweepResult sweep = claims::ParseSweepOf(*read.sheet, of_sweep);
  if (!sweep.sweep) return ToStatus(sweep.violations);
  claims::BindResult bound = claims::Bind(*read.sheet, *sweep.sweep);
  if (!bound.bound) return ToStatus(bound.violations);
  return *std::move(bound.bound);
}

}  // namespace pelab::rpc
