#include "core/experiment/sweep_checker.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "core/experiment/canonical_json.h"
#include "core/experiment/check.h"
#include "core/experiment/key.h"

namespace pelab::experiment {
namespace {

using catalog::Field;

std::string CountInWords(std::uint64_t count) {
  const bool saturated = count == std::numeric_limits<std::uint64_t>::max();
  return (saturated ? "more than " : "") + std::to_string(count);
}

// "1 pe x 2 tasks x 5 seeds x 3 values of train.lr"
std::string ProductInWords(const SweepPlan& plan) {
  const auto counted = [](std::uint64_t count, const std::string& what) {
    return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
  };
  const std::uint64_t protocols = plan.protocols.size();
  std::string product = (protocols > 1 ? counted(protocols, "protocol") + " x " : "") +
                        counted(plan.pes.size(), "pe") + " x " +
                        counted(plan.tasks.size(), "task") + " x " +
                        counted(plan.seeds.count(), "seed");
  for (const Axis& axis : plan.axes) {
    product += " x " + counted(axis.values.size(), "value") + " of " + axis.field;
  }
  return product;
}

// Explains why the job lacks the field of `setting`: the condition under which the field would
// exist.
std::string WhyAbsent(const Setting& setting, const Job& job) {
  for (const Field& field : catalog::Fields()) {
    const bool is_of = catalog::IsOf(field, job.pe, job.task);
    if (field.name != setting.field || !is_of || !field.applies_when) continue;
    const auto decider = job.values.find(field.applies_when->field);
    return setting.field + " applies only where " + field.applies_when->ToText() +
           (decider == job.values.end() ? "" : "; here it is " + catalog::ToText(decider->second));
  }
  return setting.field + " does not apply to " + job.pe + " x " + job.task;
}

// The needs of the encoding's file that the job does not meet. The fields of a failure refer to the
// file's declaration, which the plan keeps.
std::vector<Failure> FindUnmetNeeds(const OwnEncoding& encoding, const Job& job) {
  std::vector<Failure> failures;
  for (const OwnNeed* need : UnmetNeeds(encoding.needs, job.values)) {
    Violation violation;
    violation.path = need->field;
    violation.value = catalog::ToText(job.values.find(need->field)->second);
    violation.allowed = need->InWords();
    violation.message = need->field + " is " + violation.value + "; the encoding " + encoding.name +
                        " needs " + need->field + " " + violation.allowed;
    failures.push_back({std::move(violation), {need->field}});
  }
  return failures;
}

}  // namespace

SweepChecker::SweepChecker(const SweepPlan& plan,
                           const std::set<std::string, std::less<>>& unread_fields,
                           Violations* violations)
    : plan_(plan), unread_fields_(unread_fields), violations_(*violations) {}

void SweepChecker::Check() {
  if (plan_.pes.empty() || plan_.tasks.empty()) return;
  if (!IsSmallEnough()) return;
  const bool all_read = violations_.empty();
  const std::uint64_t combinations = plan_.CountCombinations();
  for (std::uint64_t i = 0; i < combinations && !violations_.full(); ++i) CheckCombination(i);
  if (all_read && !violations_.full()) ReportUnused();
}

bool SweepChecker::IsSmallEnough() {
  const std::uint64_t cells = plan_.CountCells();
  if (cells > kMaxJobs) {
    violations_.Add(Place{1, 1, ""}, CountInWords(cells),
                    "at most " + std::to_string(kMaxJobs) + " jobs",
                    "the sweep has " + CountInWords(cells) + " jobs (" + ProductInWords(plan_) +
                        "); at most " + std::to_string(kMaxJobs) + " are allowed");
    return false;
  }
  const std::uint64_t combinations = plan_.CountCombinations();
  if (combinations <= kMaxCombinations) return true;
  violations_.Add(Place{1, 1, ""}, CountInWords(combinations),
                  "at most " + std::to_string(kMaxCombinations) + " combinations",
                  "the sweep has " + CountInWords(combinations) + " different configurations (" +
                      ProductInWords(plan_) + ", seeds apart); at most " +
                      std::to_string(kMaxCombinations) + " are allowed");
  return false;
}

void SweepChecker::CheckCombination(std::uint64_t index) {
  const Combination combination = plan_.CombinationAt(index);
  const std::int64_t seed = plan_.seeds.count() == 0 ? 0 : plan_.seeds.At(0);
  const Job job = plan_.MakeJobOf(combination, seed);
  if (plan_.IsRepeat(combination, job) || IsExcluded(combination, job)) return;
  ++kept_;
  CheckApplies(combination, job);
  CheckValid(combination, job);
  CheckNew(index, combination, job);
}

bool SweepChecker::IsExcluded(const Combination& combination, const Job& job) {
  bool excluded = false;
  for (const ExcludeRule& rule : plan_.rules) {
    if (!rule.MatchesButSeed(job, combination.protocol->name) ||
        (rule.seeds && plan_.seeds.count() > 0 && !rule.seeds->Overlaps(plan_.seeds)))
      continue;
    used_rules_.insert(&rule);
    excluded =
        excluded || !rule.seeds || (plan_.seeds.count() > 0 && rule.seeds->Covers(plan_.seeds));
  }
  return excluded;
}

void SweepChecker::CheckApplies(const Combination& combination, const Job& job) {
  for (const Axis& axis : plan_.axes) {
    if (job.HasField(axis.field)) used_fields_.insert(axis.field);
  }
  for (const Setting& setting : plan_.overrides) {
    if (job.HasField(setting.field)) used_fields_.insert(setting.field);
  }
  for (const Item* item : {combination.pe, combination.task}) {
    for (const Setting& setting : item->settings) {
      if (job.HasField(setting.field)) continue;
      violations_.Add(setting.place, catalog::ToText(setting.value), "", WhyAbsent(setting, job));
    }
  }
}

void SweepChecker::CheckValid(const Combination& combination, const Job& job) {
  std::vector<Failure> failures = FindFailures(job);
  if (const auto& encoding = combination.pe->encoding) {
    for (Failure& unmet : FindUnmetNeeds(*encoding, job)) failures.push_back(std::move(unmet));
  }
  for (Failure& failure : failures) {
    const auto is_unread = [&](std::string_view field) { return unread_fields_.count(field) > 0; };
    if (std::any_of(failure.fields.begin(), failure.fields.end(), is_unread)) continue;
    const Place place = PlaceOf(combination, failure.fields);
    const bool is_default = plan_.Find(combination, failure.fields[0]) == nullptr;
    const std::string under = is_default && plan_.protocols.size() > 1
                                  ? "under protocol " + combination.protocol->name + ", "
                                  : "";
    violations_.Add(place, failure.violation.value, failure.violation.allowed,
                    under + failure.violation.message);
  }
}

void SweepChecker::CheckNew(std::uint64_t index, const Combination& combination, const Job& job) {
  const auto [known, is_new] = known_.emplace(KeyOf(ToCanonicalJson(job)), index);
  if (is_new) return;
  const Combination earlier = plan_.CombinationAt(known->second);
  const auto report = [&](const Place& again, const Place& first) {
    const std::string line = first.line > 0 ? " (line " + std::to_string(first.line) + ")" : "";
    const bool crosses = combination.protocol != earlier.protocol;
    violations_.Add(again, "", "each job once",
                    again.path + " gives the same job as " + first.path + line +
                        (crosses ? " under protocol " + earlier.protocol->name : "") +
                        "; a sweep holds each job once");
  };
  if (combination.pe != earlier.pe) return report(combination.pe->place, earlier.pe->place);
  if (combination.task != earlier.task) return report(combination.task->place, earlier.task->place);
  for (std::size_t i = 0; i < combination.axes.size(); ++i) {
    if (combination.axes[i] == earlier.axes[i]) continue;
    return report(combination.axes[i]->place, earlier.axes[i]->place);
  }
}

void SweepChecker::ReportUnused() {
  for (const ExcludeRule& rule : plan_.rules) {
    if (used_rules_.count(&rule) > 0) continue;
    violations_.Add(rule.place, "", "", rule.place.path + " matches no job of this sweep");
  }
  if (kept_ == 0) {
    violations_.Add(Place{1, 1, "exclude"}, "", "", "every job of the sweep is excluded");
    return;
  }
  const auto report = [&](const std::string& field, const Place& place) {
    if (used_fields_.count(field) > 0) return;
    violations_.Add(place, field, "",
                    field + " applies to no job of this sweep" + WhyNoField(field));
  };
  for (const Axis& axis : plan_.axes) report(axis.field, axis.place);
  for (const Setting& setting : plan_.overrides) report(setting.field, setting.place);
}

std::string SweepChecker::WhyNoField(std::string_view field) const {
  for (const Item& pe : plan_.pes) {
    const std::string why = catalog::WhyNoField(pe.name, field);
    if (!why.empty()) return "; " + why;
  }
  return "";
}

Place SweepChecker::PlaceOf(const Combination& combination,
                            const std::vector<std::string_view>& fields) const {
  for (const std::string_view field : fields) {
    if (const Setting* setting = plan_.Find(combination, field)) return setting->place;
  }
  const bool of_task = fields[0].rfind("task.", 0) == 0;
  return of_task ? combination.task->place : combination.pe->place;
}

}  // namespace pelab::experiment
