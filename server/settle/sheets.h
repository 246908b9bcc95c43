// The registered sheets, read from the database and bound to the cells of their sweeps.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "core/base/mutex.h"
#include "core/db/read/reader.h"
#include "server/settle/settlement.h"

namespace pelab::settle {

// Thread-safe.
class Sheets {
 public:
  // The sheet with this number, name or beginning of its hash. NOT_FOUND if there is none;
  // FAILED_PRECONDITION if this version of pelab refuses its document; DATA_LOSS if its rows do not
  // fit its document.
  absl::StatusOr<StoredSheet> Load(db::Reader& reader, const std::string& sheet);

 private:
  using Shared = std::shared_ptr<const claims::BoundSheet>;
  // Binding a large sheet takes a second, and each call needs it.
  absl::StatusOr<Shared> Bound(const v1::SheetRow& row);

  Mutex mutex_;
  // By hash, the one that was used last in front.
  std::list<std::pair<std::string, Shared>> bound_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pelab::settle
