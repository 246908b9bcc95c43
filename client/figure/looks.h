// How series look, as on the pages of pelab: an encoding has one colour, its variants differ in dash
// and marker (core/pages/style/looks.json). Pure functions over values: thread-safe.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/results/cells.h"

namespace pelab::client {

struct Look {
  std::string colour;        // "#0072b2"
  std::vector<double> dash;  // lengths of strokes and gaps at a width of 2; empty: solid
  std::string marker;        // "circle"
  bool varied = false;       // its encoding has other variants: the marker is drawn
};

// Of the cells of one figure; core/pages/charts/theme.js decides by the same rules.
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
  std::map<std::string, std::size_t> slots_;              // of the colours, by encoding
  std::vector<std::string> axes_;                         // in the order of the cells
  std::map<std::string, std::vector<std::string>> owns_;  // by encoding
};

}  // namespace pelab::client
