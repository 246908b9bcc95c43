#include "core/results/computed_by.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "core/base/json_text.h"
#include "core/base/strings.h"
#include "core/render/json.h"
#include "core/render/text.h"

namespace pelab::results {
namespace {

using render::Json;

constexpr std::size_t kNamedJobs = 5;

// The parts of an environment's description, in this order; `always` marks those that are named
// even if all jobs agree in them.
struct Member {
  std::string_view name;
  std::string_view before;
  std::string_view after;
  bool always;
};
constexpr Member kMembers[] = {{"device", "", "", true},
                               {"libtorch", "LibTorch ", "", true},
                               {"threads", "", " threads", false},
                               {"kernels", "", " kernels", false},
                               {"trainer", "pelab ", "", false}};

using Environment = std::map<std::string_view, std::string>;  // by Member::name

// "cpu", or a GPU's name, because the number of a GPU says nothing.
std::string DeviceOf(const Json& said) {
  const std::string device = said.value("device", "");
  const std::string name = said.value("device_name", "");
  return device == "cpu" || name.empty() ? device : name;
}

Environment EnvironmentOf(std::string_view json) {
  Environment environment;
  const Json said = ParseJson<Json>(json);
  if (!said.is_object()) return environment;
  for (const Member& member : kMembers) {
    const auto found = said.find(std::string(member.name));
    if (found == said.end()) continue;
    environment[member.name] = found->is_string() ? found->get<std::string>() : found->dump();
  }
  if (said.contains("device") && said["device"].is_string() &&
      (!said.contains("device_name") || said["device_name"].is_string())) {
    environment["device"] = DeviceOf(said);
  }
  if (environment.empty()) return environment;
  // The default; it is named only if others differ.
  if (!environment.contains("kernels")) environment["kernels"] = "our";
  return environment;
}

// The jobs of each environment that the last attempt of a job has reported, in no order. Most jobs
// of a sweep report the same text, and parsing it takes longer than anything else here.
std::map<Environment, std::vector<std::int64_t>> Environments(
    const JobList& jobs, const std::vector<v1::AttemptRow>& attempts) {
  std::set<std::int64_t> begun;
  for (const v1::JobRow& job : jobs) {
    if (job.epochs_done() > 0) begun.insert(job.job_id());
  }
  std::map<std::int64_t, const v1::AttemptRow*> last;
  for (const v1::AttemptRow& attempt : attempts) {
    if (!attempt.has_environment_json() || !begun.contains(attempt.job_id())) continue;
    const v1::AttemptRow*& known = last[attempt.job_id()];
    if (known == nullptr || known->number() < attempt.number()) known = &attempt;
  }
  std::unordered_map<std::string_view, std::vector<std::int64_t>> by_text;
  for (const auto& [job, attempt] : last) by_text[attempt->environment_json()].push_back(job);
  std::map<Environment, std::vector<std::int64_t>> environments;
  for (const auto& [text, of_it] : by_text) {
    Environment environment = EnvironmentOf(text);
    if (environment.empty()) continue;
    std::vector<std::int64_t>& known = environments[std::move(environment)];
    known.insert(known.end(), of_it.begin(), of_it.end());
  }
  return environments;
}

// The members that differ between `environments`.
std::set<std::string_view> Mixed(
    const std::map<Environment, std::vector<std::int64_t>>& environments) {
  std::map<std::string_view, std::set<std::string>> values;
  for (const auto& [environment, of_it] : environments) {
    for (const Member& member : kMembers) {
      const auto found = environment.find(member.name);
      values[member.name].insert(found == environment.end() ? "" : found->second);
    }
  }
  std::set<std::string_view> mixed;
  for (const auto& [name, different] : values) {
    if (different.size() > 1) mixed.insert(name);
  }
  return mixed;
}

std::string Describe(const Environment& environment, const std::set<std::string_view>& mixed) {
  std::string text;
  for (const Member& member : kMembers) {
    const auto found = environment.find(member.name);
    if (found == environment.end() || (!member.always && !mixed.contains(member.name))) continue;
    text += Concat(text.empty() ? "" : ", ", member.before, render::Escape(found->second),
                   member.after);
  }
  return text;
}

std::string JobsText(const std::vector<std::int64_t>& jobs) {
  std::string text = jobs.size() == 1 ? "job " : "jobs ";
  for (std::size_t i = 0; i < std::min(jobs.size(), kNamedJobs); ++i) {
    text += Concat(i == 0 ? "" : ", ", jobs[i]);
  }
  if (jobs.size() > kNamedJobs) text += Concat(" and ", jobs.size() - kNamedJobs, " more");
  return text;
}

}  // namespace

std::string ComputedByText(const JobList& jobs, const std::vector<v1::AttemptRow>& attempts) {
  const auto environments = Environments(jobs, attempts);
  if (environments.empty()) return "";
  const std::set<std::string_view> mixed = Mixed(environments);
  std::map<std::string, std::vector<std::int64_t>> by_text;
  std::size_t all = 0;
  for (const auto& [environment, of_it] : environments) {
    std::vector<std::int64_t>& known = by_text[Describe(environment, mixed)];
    known.insert(known.end(), of_it.begin(), of_it.end());
    all += of_it.size();
  }
  for (auto& [text, of_it] : by_text) std::sort(of_it.begin(), of_it.end());
  std::vector<std::pair<std::string, std::vector<std::int64_t>>> groups(by_text.begin(),
                                                                        by_text.end());
  std::stable_sort(groups.begin(), groups.end(),
                   [](const auto& a, const auto& b) { return a.second.size() > b.second.size(); });
  if (groups.size() == 1) return Concat("all ", all, ": ", groups[0].first);
  std::string text = Concat(groups[0].second.size(), " of ", all, ": ", groups[0].first);
  for (std::size_t i = 1; i < groups.size(); ++i) {
    text += Concat("; ", JobsText(groups[i].second), ": ", groups[i].first);
  }
  return text;
}

}  // namespace pelab::results
