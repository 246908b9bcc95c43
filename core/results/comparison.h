// Two methods compared on the same seeds, everything else being equal. Pure functions: thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/render/json.h"
#include "core/results/cells.h"
#include "core/results/job_list.h"
#include "core/results/metrics.h"
#include "core/stats/paired.h"
#include "core/stats/seeds.h"

namespace pelab::results {

// Test examples that only one of two trained models has right, and McNemar's test of them: about these
// two models. What holds for the methods is for a test over seeds to say.
struct ExampleCounts {
  std::int64_t only_a = 0;
  std::int64_t only_b = 0;
  double p() const { return stats::McNemarP(only_a, only_b); }
};

struct Pair {
  v1::JobRow a;
  v1::JobRow b;
  std::optional<double> difference;  // the metric of a minus that of b, where both have one
  std::optional<ExampleCounts> examples;
};

// Pairs that differ in nothing but the seed.
struct PairGroup {
  std::vector<std::string> values;  // one for every Comparison::columns
  std::vector<Pair> pairs;
  stats::SeedSummary a;  // of the paired jobs that have a value on both sides
  stats::SeedSummary b;
  stats::SeedSummary difference;  // of the pairs; missing and failed count pairs
  std::optional<stats::PairedTest> test;
};

struct Comparison {
  Metric metric;
  stats::IntervalKind interval = stats::IntervalKind::kStudentT;
  std::vector<std::string> columns;  // what tells the groups apart
  std::vector<PairGroup> groups;
  // Fields other than the compared ones that have one value on each side, and not the same: what
  // else the difference may come from. "train.batch_size: 512 against 1024".
  std::vector<std::string> confounders;
  std::size_t unpaired_a = 0;  // jobs without a partner
  std::size_t unpaired_b = 0;
};

// Jobs are partners if their seeds and all other fields are equal, save those that the two sides
// are told apart by: the fields of `compared` and their parts ("pe" takes "pe.base" along), and
// fields that have one value in all of a task's jobs of one side and another in all of the other's.
// `compared`: the fields that the two conditions name. INVALID_ARGUMENT where one job has several
// partners (with what tells those apart), and where a job is on both sides.
absl::StatusOr<Comparison> Compare(const JobList& a, const JobList& b,
                                   const std::vector<std::string>& compared, const Metric& metric,
                                   const MetricValues* values, stats::IntervalKind interval);

// The paired jobs of each side that diverged.
struct DivergedPairs {
  int a = 0;
  int b = 0;
};
DivergedPairs DivergedOf(const PairGroup& group);
// "diverged: 2 of 4 jobs of pe=rope, 1 of 4 of pe=nope"; empty where no paired job did.
std::string DivergedText(const Comparison& comparison, const std::string& name_a,
                         const std::string& name_b);

// Fills in the pairs' `examples` from the results of the analysis example_correctness (rows of other analyses
// are left out), where both sides of a pair were judged on the same examples.
void CompareExamples(const std::vector<v1::AnalysisRow>& analyses, Comparison& comparison);

render::Json ToJson(const Comparison& comparison, const PairGroup& group);
std::vector<std::string> ComparisonColumns(const Comparison& comparison);  // of the CSV

}  // namespace pelab::results
