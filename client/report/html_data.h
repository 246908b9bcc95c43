// The data of a report, in the form that the page reads (docs/formats.md, "Report"). Pure
// functions: thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "client/report/html_input.h"
#include "core/render/json.h"

namespace pelab::client {

struct ReportOptions {
  std::int64_t made_at_ms = 0;  // Unix time
  std::string command;          // the command that makes this report again
  bool all_seeds = false;       // include every seed's curve, however many there are
};

// All the data of the page.
render::Json ReportData(const ReportInput& input, const ReportOptions& options);

// The parts of ReportData.
namespace report {

// How the charts name a group. `label` ("rope", "rope train.lr=0.0003") identifies it within its
// task and protocol. Groups with the same `group`, that is task and protocol, share a chart.
struct CellName {
  std::string group;  // "distance, clean"
  std::string task;
  std::string protocol;  // empty if all groups have the same protocol
  std::string label;
  std::string encoding;  // "rope"
  std::string own;       // the encoding's settings: "partial_rope(heads=2)"; empty for the defaults
  std::string axis;      // other settings that vary: "train.lr=0.0003"
};
CellName NameOf(const results::CellTable& cells, const results::Cell& cell);

// Whether a job's results are complete: it is trained, and neither failed nor cancelled.
bool IsDone(const v1::JobRow& job);

// {"mean", "sd", "half_width", "n", "of", "missing", "failed", "cancelled"} of the test accuracy
// over the group's done seeds.
render::Json TestAccuracy(const results::Cell& cell);

// {"with_seeds", "seed_points", "series": [{"cell", "epochs", "n", "of", "basis", "test", "train",
// "seeds"}]}. Each series is the mean over the done seeds (if none is done, over those with a
// curve), up to the epoch that all of them have reached, with the 95 % interval of the mean.
render::Json Curves(const ReportInput& input, bool all_seeds);

// For each group and variant of the ablation: the mean drop of each head, and the drops of every
// seed.
render::Json Heads(const ReportInput& input);
// For each group, variant and layer: the mean over seeds of the layer's largest drop that counts
// (core/stats/deposit.h).
render::Json Layers(const ReportInput& input);
render::Json Deposits(const ReportInput& input);
// Test accuracy against the number of heads with RoPE, by task and protocol, with `rope` and `nope`
// for comparison.
render::Json HeadCounts(const ReportInput& input);
// Jobs without a complete result, with their state and error.
render::Json Lacking(const ReportInput& input);
// The trained configurations: {"model", "train", "varies", "tasks", "encodings", "protocols"}.
render::Json SetUp(const ReportInput& input);
// {"baseline", "rows", "without"}: each encoding's test accuracy minus the baseline's (rope, else
// the first encoding), paired by seed with all other settings equal. "without" lists encodings that
// have no pair, and why.
render::Json Comparisons(const ReportInput& input);
// [{"cell", "split", "accuracy", "chance"}]: for each group and split of its data the accuracy as a
// summary over the seeds, and the mean accuracy of guessing. Empty without the analysis
// split_accuracy.
render::Json Splits(const ReportInput& input);
// [{"cell", "median", "reached", "of"}]: the epoch, from 0, by which at least half of the done
// seeds had reached a test accuracy of 0.5. A seed that never reaches it counts as slower than all
// others. The median is null if the median seed never reaches it.
render::Json EpochsToHalf(const ReportInput& input);
// The registered claim sheets of the sweeps: as VerdictsJson has them, each claim also with its
// "history", [[seeds, log10 of its larger e-value], …] by round, and "fraction", whether its
// metric lies in 0 to 1.
render::Json Sheets(const ReportInput& input);
// Versions, devices, keys and specs behind the report, and the commands that repeat it.
render::Json Provenance(const ReportInput& input, const ReportOptions& options);

}  // namespace report

}  // namespace pelab::client
