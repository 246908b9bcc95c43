// Jobs and analyses: resolves every field, reads values, and checks constraints.
#include "core/experiment/job.h"

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <utility>

#include "core/experiment/analysis.h"
#include "core/experiment/chance.h"
#include "core/experiment/check.h"
#include "core/experiment/violation.h"

namespace pelab::experiment {
namespace {

using catalog::Field;
using catalog::Value;
using catalog::Values;

template <typename T>
const T& Get(const Job& job, std::string_view field) {
  const auto found = job.values.find(field);
  if (found == job.values.end()) {
    throw std::logic_error("a job of " + job.pe + " x " + job.task + " has no field " +
                           std::string(field));
  }
  const T* value = std::get_if<T>(&found->second);
  if (value == nullptr) throw std::logic_error("field " + std::string(field) + " has another type");
  return *value;
}

const catalog::Entry& Known(const catalog::Entry* entry, std::string_view kind,
                            std::string_view name) {
  if (entry == nullptr) {
    throw std::logic_error("the catalog has no " + std::string(kind) + " " + std::string(name));
  }
  return *entry;
}

Value Resolve(const Field& field, std::string_view protocol, std::string_view pe,
              std::string_view task, const Values& set, const Values& resolved) {
  const auto given = set.find(field.name);
  return given != set.end() ? given->second
                            : catalog::DefaultOf(field, protocol, pe, task, resolved);
}

// The smallest label that the job's examples can have.
std::int64_t FirstLabel(const Job& job) {
  if (job.task == catalog::OwnTask().name) return job.Int("task.first_label");
  return job.task == "distance" && job.Choice("task.definition") != "clean" ? 2 : 0;
}

Violation Wrong(std::string_view field, const Value& value, const std::string& allowed) {
  Violation violation;
  violation.path = field;
  violation.value = catalog::ToText(value);
  violation.allowed = allowed;
  violation.message =
      violation.path + " is " + violation.value + "; it must be " + violation.allowed;
  return violation;
}

}  // namespace

bool Job::Bool(std::string_view field) const { return Get<bool>(*this, field); }
std::int64_t Job::Int(std::string_view field) const { return Get<std::int64_t>(*this, field); }
double Job::Real(std::string_view field) const { return Get<double>(*this, field); }
const std::string& Job::Choice(std::string_view field) const {
  return Get<std::string>(*this, field);
}
bool Job::Has(std::string_view set_field, std::string_view choice) const {
  for (const std::string& member : Get<std::vector<std::string>>(*this, set_field)) {
    if (member == choice) return true;
  }
  return false;
}
const std::vector<std::int64_t>& Job::Ints(std::string_view field) const {
  return Get<std::vector<std::int64_t>>(*this, field);
}
bool Job::HasField(std::string_view field) const { return values.find(field) != values.end(); }

Values WithCoordinates(const Job& job) {
  Values values = job.values;
  values["pe"] = job.pe;
  values["task"] = job.task;
  values["seed"] = job.seed;
  return values;
}

Job MakeJob(std::string_view protocol, std::string_view pe, std::string_view task,
            std::int64_t seed, const Values& set) {
  Known(catalog::FindProtocol(protocol), "protocol", protocol);
  Job job;
  job.pe = pe;
  job.pe_version = Known(catalog::FindPe(pe), "pe", pe).version;
  job.task = task;
  job.task_version = Known(catalog::FindTask(task), "task", task).version;
  job.seed = seed;
  Values resolved = WithCoordinates(job);
  for (const Field& field : catalog::Fields()) {
    if (!catalog::Applies(field, pe, task, resolved)) continue;
    resolved.emplace(field.name, Resolve(field, protocol, pe, task, set, resolved));
  }
  for (const char* coordinate : {"pe", "task", "seed"}) resolved.erase(coordinate);
  job.values = std::move(resolved);
  return job;
}

std::vector<Failure> FindFailures(const Job& job) {
  std::vector<Failure> failures;
  for (const Field& field : catalog::Fields()) {
    const auto value = job.values.find(field.name);
    if (value == job.values.end() || !catalog::IsOf(field, job.pe, job.task)) continue;
    const std::string allowed = catalog::CheckValue(field, value->second);
    if (!allowed.empty()) {
      failures.push_back({Wrong(field.name, value->second, allowed), {field.name}});
    }
  }
  if (!failures.empty()) return failures;  // the constraints rely on values in range
  const Values values = WithCoordinates(job);
  for (const catalog::Constraint& constraint : catalog::Constraints()) {
    const std::string allowed = constraint.check(values);
    if (allowed.empty()) continue;
    failures.push_back({Wrong(constraint.field, values.find(constraint.field)->second, allowed),
                        {constraint.field}});
    std::string& message = failures.back().violation.message;
    message = catalog::InConstraint(message, constraint.name);
    for (const std::string_view other : constraint.others) failures.back().fields.push_back(other);
  }
  return failures;
}

std::vector<Violation> CheckJob(const Job& job) {
  std::vector<Violation> violations;
  for (Failure& failure : FindFailures(job)) violations.push_back(std::move(failure.violation));
  return violations;
}

double ChanceAccuracy(const Job& job) {
  if (job.task == catalog::OwnTask().name) return job.Real("task.chance");
  return 1 / static_cast<double>(ScoredClasses(job));
}

bool LeavesZeroOut(const Job& job) {
  const bool has_class_zero = job.Choice("task.label_space") == "exact" || FirstLabel(job) == 0;
  return job.Choice("task.scored_classes") == "nonzero" && has_class_zero;
}

std::int64_t ScoredClasses(const Job& job) {
  return std::max<std::int64_t>(1, LabelCount(job) - (LeavesZeroOut(job) ? 1 : 0));
}

std::string TaskLabel(const Job& job) {
  if (job.task != catalog::OwnTask().name) return job.task;
  const std::string& test = job.Choice("task.test");
  return job.task + ":" + job.Choice("task.data") + (test == "test" ? "" : "(test=" + test + ")");
}

std::string_view TaskOfLabel(std::string_view label) { return label.substr(0, label.find(':')); }

Analysis MakeAnalysis(std::string_view protocol, std::string_view name, const Values& set) {
  Analysis analysis;
  analysis.name = name;
  analysis.version = Known(catalog::FindAnalysis(name), "analysis", name).version;
  for (const Field& field : catalog::Fields()) {
    if (field.owner != name) continue;
    if (field.applies_when && !catalog::Applies(field, name, "", analysis.parameters)) continue;
    analysis.parameters.emplace(field.name,
                                Resolve(field, protocol, "", "", set, analysis.parameters));
  }
  return analysis;
}

}  // namespace pelab::experiment
