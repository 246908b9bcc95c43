// The jobs of a sweep as rows x tasks: in each cell a mark a seed, the course of its accuracy and
// where it is now. Pure functions: thread-safe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "client/terminal/style.h"

namespace pelab::render {

struct Grid {
  enum class Mark { kQueued, kRunning, kSucceeded, kFailed, kCancelled };
  struct Cell {
    std::vector<Mark> seeds;    // in the order of the seeds
    std::vector<double> curve;  // accuracies over equal parts of the epochs; NaN: not there yet
    std::optional<double> accuracy;  // where it is now
    bool complete = false;           // every seed has ended well; else "~" stands before it
  };
  struct Row {
    std::string label;                       // "rope"
    std::vector<std::optional<Cell>> cells;  // by task; nullopt: the sweep does not have it
  };
  std::string title;  // of the labels: "pe"
  std::vector<std::string> tasks;
  std::vector<Row> rows;

  bool empty() const { return rows.empty(); }
};

// A column a value, from 0 to 1: "▁▂▃▄▅▆▇█", or "_.:-=+*#" without colour; a space for NaN.
std::string Sparkline(const std::vector<double>& values, const Style& style);

// A line a row; tasks that do not fit beside each other go on below. With `max_lines` above 0 it
// leaves out what takes too many: the sparklines first, then the accuracies, then rows, and says
// how many. Ends with a line that explains the marks.
std::string GridText(const Grid& grid, const Style& style, int max_lines = 0);

}  // namespace pelab::render
