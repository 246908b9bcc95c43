// The data of a report, as the page reads it (docs/formats.md, "Report"). Pure functions:
// thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "client/report/html_input.h"
#include "core/render/json.h"

namespace pelab::client {

struct ReportOptions {
  std::int64_t made_at_ms = 0;  // Unix time
  std::string command;          // that made it, to be made again
  bool all_seeds = false;       // each seed's curve, however many there are
};

// Points of single seeds' curves that go into a page of themselves (all_seeds puts in all).
inline constexpr std::size_t kMaxSeedPoints = 400'000;

// Everything that the page shows.
render::Json ReportData(const ReportInput& input, const ReportOptions& options);

// Its parts.
namespace report {

// What the charts call a cell: what tells it apart within its task and protocol, "rope" or "rope
// 0.0003", and in which of these groups it is.
struct CellName {
  std::string group;  // "distance, clean"
  std::string task;
  std::string protocol;  // empty where all cells have one
  std::string label;
  std::string encoding;  // "rope"
  std::string own;       // what it is set to: "partial_rope(heads=2)"; empty as it is by default
  std::string axis;      // what else varies: "train.lr=0.0003"
};
CellName NameOf(const results::CellTable& cells, const results::Cell& cell);

// Whether a job's results are whole.
bool IsDone(const v1::JobRow& job);

// {"mean", "sd", "half_width", "n", "of", "missing", "failed"} of the test accuracy over a cell's
// seeds that are done.
render::Json TestAccuracy(const results::Cell& cell);

// {"complete", "series": [{"cell", "epochs", "n", "of", "basis", "test", "train", "seeds"}]}: the
// mean over the seeds that are done (where none is, over those that have begun), as far as all of
// them have come, with the 95 % interval of the mean.
render::Json Curves(const ReportInput& input, bool all_seeds);

// For each cell and variant of the ablation: the mean drop of each head, and every seed's.
render::Json Heads(const ReportInput& input);
// For each cell, variant and layer: the mean over seeds of the largest drop that counts.
render::Json Layers(const ReportInput& input);
render::Json Deposits(const ReportInput& input);
// Test accuracy against the number of heads with RoPE, by task and protocol, with `rope` and `nope`
// to compare with.
render::Json HeadCounts(const ReportInput& input);
// Jobs that have no result, and why.
render::Json Lacking(const ReportInput& input);
// What was trained: {"model", "train", "varies", "tasks", "encodings", "protocols"}.
render::Json SetUp(const ReportInput& input);
// {"baseline", "rows", "without"}: each encoding's test accuracy less the baseline's (rope, else the
// first), paired by seed and everything else equal.
render::Json Comparisons(const ReportInput& input);
// [{"cell", "median", "reached", "of"}]: the epoch, from 0, by which at least half of the seeds had
// a test accuracy of one half; a seed that never has it counts as slower than all others, and the
// median is null where it is one of them.
render::Json EpochsToHalf(const ReportInput& input);
// What it was made with and how to make it again.
render::Json Provenance(const ReportInput& input, const ReportOptions& options);

}  // namespace report

}  // namespace pelab::client
