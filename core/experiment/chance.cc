#include "core/experiment/chance.h"

#include <cmath>

#include "core/experiment/canonical_json.h"
#include "core/experiment/configuration.h"

namespace pelab::experiment {
namespace {

constexpr double kClearlyAbove = 1.1;

}  // namespace

std::int64_t LabelCount(const Job& job) {
  // These ranges must match the generators in the trainer's task/ folder.
  if (job.task == catalog::OwnTask().name) return job.Int("task.classes");
  if (job.task == "counting") return job.Int("task.max_count") + 1;
  if (job.Choice("task.definition") == "clean") return job.Int("task.max_distance");
  return job.Int("task.max_gap");
}

std::int64_t ReadOutClasses(const Job& job) {
  return job.Choice("task.label_space") == "exact" ? LabelCount(job) : job.Int("task.vocabulary");
}

double ChanceLoss(const Job& job) { return std::log(static_cast<double>(ReadOutClasses(job))); }

double DivergenceLoss(const Job& job) { return kClearlyAbove * ChanceLoss(job); }

std::optional<double> DivergenceLossOf(std::string_view spec_template) {
  const CanonicalResult result = FromCanonicalJson(FillTemplate(spec_template, 0));
  if (!result.job) return std::nullopt;
  return DivergenceLoss(*result.job);
}

}  // namespace pelab::experiment
