// Compares two methods on the same seeds with everything else equal. Pure functions: thread-safe.
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

// The test examples that only one of two trained models classifies correctly, and McNemar's test on
// them. The test is about these two models; only a test over seeds says something about the
// methods.
struct ExampleCounts {
  std::int64_t only_a = 0;
  std::int64_t only_b = 0;
  double p() const { return stats::McNemarP(only_a, only_b); }
};

struct Pair {
  v1::JobRow a;
  v1::JobRow b;
  std::optional<double> difference;  // the metric of a minus that of b, if both have one
  std::optional<ExampleCounts> examples;
};

// Pairs that differ only in the seed.
struct PairGroup {
  std::vector<std::string> values;  // one for each of Comparison::columns
  std::vector<std::string> shown;   // the same for people: with short hashes
  std::vector<Pair> pairs;
  stats::SeedSummary a;  // over the paired jobs with a value on both sides
  stats::SeedSummary b;
  // Over the pairs; missing and failed count pairs. Low and high of an accuracy's difference are
  // clipped to -1 … 1.
  stats::SeedSummary difference;
  std::optional<stats::PairedTest> test;
};

struct Comparison {
  Metric metric;
  stats::IntervalKind interval = stats::IntervalKind::kStudentT;
  std::vector<std::string> columns;  // the fields that tell the groups apart
  std::vector<PairGroup> groups;
  // Fields, other than the compared ones, that have one value on side a and another value on side
  // b: other possible causes of the difference. "train.batch_size: 512 against 1024".
  std::vector<std::string> confounders;
  std::size_t unpaired_a = 0;  // jobs without a partner
  std::size_t unpaired_b = 0;
};

// Pairs the jobs of the two sides. Two jobs are partners if their seeds are equal, and all other
// fields except those that distinguish the sides. The fields of `compared` and their parts ("pe"
// includes "pe.base") distinguish the sides. A further field distinguishes them if, within every
// task, it has one value on side a and one value on side b, and these two values differ in some
// task. `compared` lists the fields that the two conditions name. INVALID_ARGUMENT if a job has
// several partners (the message says how these differ), or if a job is on both sides.
absl::StatusOr<Comparison> Compare(const JobList& a, const JobList& b,
                                   const std::vector<std::string>& compared, const Metric& metric,
                                   const MetricValues* values, stats::IntervalKind interval);

// The confounders for people: with short hashes.
std::vector<std::string> ShownConfounders(const Comparison& comparison);

// The paired jobs of each side that diverged.
struct DivergedPairs {
  int a = 0;
  int b = 0;
};
DivergedPairs DivergedOf(const PairGroup& group);
// "diverged: 2 of 4 jobs of pe=rope, 1 of 4 of pe=nope"; empty if no paired job diverged.
std::string DivergedText(const Comparison& comparison, const std::string& name_a,
                         const std::string& name_b);

// Fills in the pairs' `examples` from results of the analysis example_correctness; rows of other
// analyses are ignored. Only for pairs whose sides were judged on the same examples.
void CompareExamples(const std::vector<v1::AnalysisRow>& analyses, Comparison& comparison);

render::Json ToJson(const Comparison& comparison, const PairGroup& group);
std::vector<std::string> ComparisonColumns(const Comparison& comparison);  // columns of the CSV

}  // namespace pelab::results
