// The look of each series, as on pelab's HTML pages: each encoding has one color, and its variants
// differ in dash and marker (core/pages/style/looks.json). Pure functions over values: thread-safe.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/results/cells.h"

namespace pelab::client {

struct Look {
  std::string color;         // "#0072b2"
  std::vector<double> dash;  // alternating lengths of strokes and gaps at line width 2; empty:
                             // solid
  std::string marker;        // "circle"
  bool varied = false;       // the figure shows several variants, so the marker is drawn
};

// Looks for the groups of one figure. core/pages/charts/theme.js follows the same rules.
class Looks {
 public:
  explicit Looks(const results::CellTable& cells);
  Look Of(const results::Cell& cell) const;

 private:
  struct Kind {
    std::string encoding, own, axis;
  };
  Kind KindOf(const results::Cell& cell) const;
  void TakeSlot(const std::string& encoding);

  const results::CellTable& cells_;
  std::map<std::string, std::size_t> slots_;              // color slot, by encoding
  std::vector<std::string> axes_;                         // in the order of the groups
  std::map<std::string, std::vector<std::string>> owns_;  // by encoding
};

}  // namespace pelab::client
