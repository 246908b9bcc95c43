// Makes the values that tell groups apart short enough for people to read.
#pragma once

#include <string>

#include "core/base/short_hashes.h"

namespace pelab::results {

// Sets the `shown` of each row to its `values`, with short hashes.
template <typename Rows>
void ShowShortHashes(Rows& rows) {
  ShortHashes hashes;
  for (const auto& row : rows) {
    for (const std::string& value : row.values) hashes.Add(value);
  }
  for (auto& row : rows) {
    row.shown.clear();
    for (const std::string& value : row.values) row.shown.push_back(hashes.In(value));
  }
}

}  // namespace pelab::results
