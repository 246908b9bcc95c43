// The jobs of a sweep as a grid of rows x tasks. Each grid cell shows one mark per seed, a
// sparkline of the accuracy and the accuracy so far. Pure functions: thread-safe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "client/terminal/style.h"

namespace pelab::render {

struct Grid {
  enum class Mark { kQueued, kRunning, kSucceeded, kFailed, kCancelled };
  struct Cell {
    std::vector<Mark> seeds;    // ordered by seed
    std::vector<double> curve;  // the last accuracy in each equal part of the epochs; NaN: none yet
    std::optional<double> accuracy;  // the accuracy so far
    bool complete = false;           // every seed has succeeded; otherwise "~" precedes the
                                     // accuracy
  };
  struct Row {
    std::string label;                       // "rope"
    std::vector<std::optional<Cell>> cells;  // by task; nullopt: the sweep has no such cell
  };
  std::string title;  // the header above the labels: "pe"
  std::vector<std::string> tasks;
  std::vector<Row> rows;

  bool empty() const { return rows.empty(); }
};

// One character per value, from 0 to 1: "▁▂▃▄▅▆▇█", or "_.:-=+*#" without color; a space for NaN.
std::string Sparkline(const std::vector<double>& values, const Style& style);

// One line per row; tasks that do not fit side by side continue below. If `max_lines` is above 0,
// the grid is cut to fit: first without sparklines, then without accuracies, then with fewer rows,
// and it says how many rows are missing. The lines after the rows explain the marks.
std::string GridText(const Grid& grid, const Style& style, int max_lines = 0);

}  // namespace pelab::render
