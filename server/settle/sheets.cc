#include "server/settle/sheets.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/rpc/sheet_document.h"

namespace pelab::settle {
namespace {

constexpr std::size_t kBoundSheets = 16;  // that are kept

}  // namespace

absl::StatusOr<StoredSheet> Sheets::Load(db::Reader& reader, const std::string& sheet) {
  v1::GetSheetRequest request;
  request.mutable_sheet()->set_sheet(sheet);
  PELAB_ASSIGN_OR_RETURN(v1::Sheet stored, reader.GetSheet(request));
  PELAB_ASSIGN_OR_RETURN(auto bound, Bound(stored.row()));
  return LoadSheet(reader, std::move(stored), std::move(bound));
}

absl::StatusOr<Sheets::Shared> Sheets::Bound(const v1::SheetRow& row) {
  {
    MutexLock lock(&mutex_);
    for (auto its = bound_.begin(); its != bound_.end(); ++its) {
      if (its->first != row.sha256()) continue;
      bound_.splice(bound_.begin(), bound_, its);
      return its->second;
    }
  }
  auto read = rpc::BindSheetDocument(row.document(), row.sweep_document());
  if (!read.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat(Named(row), " cannot be settled: this version refuses its document"));
  }
  auto bound = std::make_shared<const claims::BoundSheet>(*std::move(read));
  MutexLock lock(&mutex_);
  bound_.emplace_front(row.sha256(), bound);
  if (bound_.size() > kBoundSheets) bound_.pop_back();
  return bound;
}

}  // namespace pelab::settle
