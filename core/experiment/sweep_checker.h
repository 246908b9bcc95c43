// Checks whether the jobs of a plan can run: first the plan's size, then every combination once.
// Private to core/experiment.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/experiment/sweep_plan.h"

namespace pelab::experiment {

class SweepChecker {
 public:
  // `unread_fields` are the fields whose value in the document could not be read. Violations that
  // depend on them are not reported.
  SweepChecker(const SweepPlan& plan, const std::set<std::string, std::less<>>& unread_fields,
               Violations* violations);

  void Check();

 private:
  bool IsSmallEnough();
  void CheckCombination(std::uint64_t index);
  // Whether rules exclude every seed of this combination. Records the rules that match something.
  bool IsExcluded(const Combination& combination, const Job& job);
  void CheckApplies(const Combination& combination, const Job& job);
  void CheckValid(const Combination& combination, const Job& job);
  void CheckNew(std::uint64_t index, const Combination& combination, const Job& job);
  void ReportUnused();
  // "; …" if one of the sweep's PEs has a particular reason to lack the field.
  std::string WhyNoField(std::string_view field) const;
  Place PlaceOf(const Combination& combination, const std::vector<std::string_view>& fields) const;

  const SweepPlan& plan_;
  const std::set<std::string, std::less<>>& unread_fields_;
  Violations& violations_;
  std::unordered_map<std::string, std::uint64_t> known_;  // key of a job -> its combination
  std::set<const ExcludeRule*> used_rules_;
  std::set<std::string, std::less<>> used_fields_;  // axes and overrides that apply to some job
  std::uint64_t kept_ = 0;                          // combinations with at least one job
};

}  // namespace pelab::experiment
