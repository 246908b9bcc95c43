#include "core/rpc/sheet_document.h"

#include <utility>

#include "core/claims/sheet_reader.h"
#include "core/rpc/sweep_document.h"

namespace pelab::rpc {

absl::StatusOr<claims::BoundSheet> BindSheetDocument(const std::string& document,
                                                     const std::string& sweep_document) {
  const claims::SheetResult read = claims::ReadSheet(document);
  if (!read.sheet) return ToStatus(read.violations);
  const bool is_inline = read.sheet->sweep_file.empty();
  const experiment::SweepResult sweep =
      claims::ParseSweepOf(*read.sheet, is_inline ? read.sheet->sweep_document : sweep_document);
  if (!sweep.sweep) return ToStatus(sweep.violations);
  claims::BindResult bound = claims::Bind(*read.sheet, *sweep.sweep);
  if (!bound.bound) return ToStatus(bound.violations);
  return *std::move(bound.bound);
}

}  // namespace pelab::rpc
