#include "core/catalog/heads.h"

#include "core/catalog/catalog.h"

namespace pelab::catalog {

bool HeadsDiffer(std::string_view pe) {
  const Entry* entry = FindPe(pe);
  return entry != nullptr && entry->heads_differ;
}

}  // namespace pelab::catalog
