// The progress of a sweep: a display that redraws itself on a terminal, plain lines elsewhere.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "client/terminal/grid.h"
#include "client/terminal/style.h"

namespace pelab::render {

// A bar of `width` columns: "━━━━━━" in two colors, or "[######----]" without color, which takes
// two columns more.
std::string Bar(double fraction, int width, const Style& style);

struct RunningLine {
  std::string label;  // "rope distance seed 0"
  int epochs = 0;
  int epochs_done = 0;
  double test_accuracy = 0;
  std::string where;       // "host cpu"
  bool analysing = false;  // trained; now runs its analyses
};

struct ProgressState {
  std::string name;
  std::uint64_t jobs = 0;
  std::uint64_t succeeded = 0;
  std::uint64_t failed = 0;  // failed or cancelled
  std::uint64_t running = 0;
  std::uint64_t epochs = 0;
  std::uint64_t epochs_done = 0;
  std::string waiting_reason;
  std::vector<RunningLine> running_jobs;
  Grid grid;  // drawn below if it is not empty and there is room
};

// Estimates the remaining seconds from the pace since the first epoch that came while it watched:
// before that epoch, trainers start and make their data. nullopt while there is no estimate.
class Eta {
 public:
  std::optional<double> Update(double now_seconds, const ProgressState& state);

 private:
  struct Start {
    double seconds = 0;
    std::uint64_t done = 0;
  };

  std::optional<std::uint64_t> first_done_;
  std::optional<Start> start_;
};

// Writes to `write`. Not thread-safe.
class ProgressView {
 public:
  using Write = std::function<void(const std::string&)>;
  // `redraw`: the output is a terminal, and each drawing replaces the last one. Otherwise prints a
  // line whenever a job has ended, and every client::limits::kPlainSeconds while epochs advance.
  ProgressView(const Style& style, bool redraw, Write write)
      : style_(style), redraw_(redraw), write_(std::move(write)) {}

  void Update(double now_seconds, const ProgressState& state);
  // Erases the drawing on a terminal, so that later output takes its place.
  void Finish();

 private:
  void Draw(const ProgressState& state, std::optional<double> eta);
  void Plain(double now_seconds, const ProgressState& state, std::optional<double> eta);

  Style style_;
  bool redraw_;
  Write write_;
  Eta eta_;
  int lines_ = 0;
  bool printed_ = false;
  double printed_at_ = 0;
  std::uint64_t printed_ended_ = 0;
  std::uint64_t printed_epochs_ = 0;
};

}  // namespace pelab::render
