// The PEs that this trainer can build. A test compares this table with the catalog.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "worker/trainer/pe/pe.h"

namespace pelab::trainer {

struct PeEntry {
  std::string_view name;
  int version;
  std::unique_ptr<PositionalEncoding> (*make)(const PeContext&);
};

const std::vector<PeEntry>& PeRegistry();
// The entry of `own`, the PE whose methods come from a file. It is not in the table.
const PeEntry& OwnPeEntry();

// Throws TrainerError(kBadSpec) if neither the table nor OwnPeEntry() has the job's PE name and
// version.
std::unique_ptr<PositionalEncoding> MakePe(const PeContext& context);

}  // namespace pelab::trainer
