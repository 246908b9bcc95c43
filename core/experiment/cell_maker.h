// Computes the cells of a sweep one after the other, with the same results as Sweep::At. Most cells
// differ from the previous cell only in their seed. For such a cell, only the parts that depend on
// the seed are computed again. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
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
    std::uint64_t combination = 0;
    Cell cell;                           // computed for some other seed
    std::vector<std::string> following;  // fields whose value is the seed
    std::string spec_template;
    bool known = false;  // false: each cell has to be computed in full
  };

  Shared Share(std::uint64_t combination) const;

  Sweep sweep_;
  std::optional<Shared> shared_;
};

}  // namespace pelab::experiment
