// Computes the cells of a sweep one after the other, with the same results as Sweep::At. Most cells
// differ from an earlier cell only in their seed. For such a cell, only the parts that depend on
// the seed are computed again. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/experiment/sweep.h"

namespace pelab::experiment {

class CellMaker {
 public:
  explicit CellMaker(Sweep sweep) : sweep_(std::move(sweep)) {}

  std::optional<Cell> At(std::uint64_t ordinal);

 private:
  // The parts that all seeds of a combination share.
  struct Shared {
    Cell cell;                           // computed for some other seed
    std::vector<std::string> following;  // fields whose value is the seed
    std::string spec_template;
    bool known = false;  // false: each cell has to be computed in full
  };

  Shared Share(std::uint64_t combination) const;
  const Shared& SharedOf(std::uint64_t combination);

  Sweep sweep_;
  std::unordered_map<std::uint64_t, Shared> shared_;  // by combination
};

}  // namespace pelab::experiment
