// The cells of a sweep one after the other, as Sweep::At gives them: where a cell differs from the
// one before in its seed alone, as most do, only what depends on the seed is made anew. Not
// thread-safe.
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
  // What the seeds of a combination share.
  struct Shared {
    std::uint64_t combination = 0;
    Cell cell;                           // of another seed
    std::vector<std::string> following;  // fields that have the value of the seed
    std::string spec_template;
    bool known = false;  // else each cell has to be made whole
  };

  Shared Share(std::uint64_t combination) const;

  Sweep sweep_;
  std::optional<Shared> shared_;
};

}  // namespace pelab::experiment
