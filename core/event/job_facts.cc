#include "core/event/job_facts.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "core/base/json_text.h"
#include "core/experiment/canonical_json.h"

namespace pelab::event {
namespace {

// Empty, or why `total` is not the number of scored targets among `targets`.
std::string WhatIsWrongWithTotal(absl::string_view of, absl::string_view name, std::int64_t total,
                                 std::int64_t targets, bool exactly, absl::string_view what) {
  if (exactly ? total == targets : total <= targets) return "";
  return absl::StrCat(of, ": \"", name, "\" is ", total, "; allowed: ", exactly ? "" : "at most ",
                      targets, ", as ", what);
}

// The targets of which an ablation was asked for.
struct Asked {
  std::int64_t targets = 0;
  bool exactly = false;  // the parameters say all that is needed
};
Asked TargetsOf(const v1::HeadAblation& ablation, const JobFacts& job) {
  const auto parameters = ParseJson(ablation.parameters_json());
  if (!parameters.is_object()) return {std::numeric_limits<std::int64_t>::max(), false};
  const auto data = parameters.find("data");
  const auto most = parameters.find("max_examples");
  const std::optional<std::int64_t> limit =
      most == parameters.end() ? std::nullopt : IntegerOf<std::int64_t>(*most);
  Asked asked{job.train_targets + job.test_targets, data != parameters.end() && limit.has_value()};
  if (data != parameters.end() && *data == "test") asked.targets = job.test_targets;
  const std::int64_t first = limit.value_or(0);
  if (first <= 0) return asked;
  // How many targets the first examples have is known only if each has one.
  asked.exactly = asked.exactly && job.most_of_example == 1;
  if (first <= (asked.targets - 1) / job.most_of_example) {
    asked.targets = first * job.most_of_example;  // fewer than all; cannot overflow
  }
  return asked;
}

}  // namespace

std::optional<JobFacts> FactsOf(std::string_view spec_json) {
  const experiment::CanonicalResult result = experiment::FromCanonicalJson(spec_json);
  if (!result.job) return std::nullopt;
  const experiment::Job& job = *result.job;
  const bool by_position = job.HasField("task.test_targets");
  const auto targets = [&](const char* examples, const char* positions) {
    return job.Int(by_position ? positions : examples);
  };
  return JobFacts{.layers = job.Int("model.layers"),
                  .heads = job.Int("model.heads"),
                  .train_targets = targets("task.train_examples", "task.train_targets"),
                  .test_targets = targets("task.test_examples", "task.test_targets"),
                  .most_of_example = by_position ? job.Int("task.length") : 1,
                  .every_target_scored = job.Choice("task.scored_classes") == "all"};
}

std::string WhatIsWrong(const v1::Epoch& epoch, const JobFacts& job) {
  const std::string of = absl::StrCat("epoch ", epoch.epoch());
  std::string wrong =
      WhatIsWrongWithTotal(of, "train_total", epoch.train_total(), job.train_targets,
                           job.every_target_scored, "the job's training examples");
  if (!wrong.empty()) return wrong;
  wrong = WhatIsWrongWithTotal(of, "train_eval_total", epoch.train_eval_total(), job.train_targets,
                               false, "the job's training examples");
  if (!wrong.empty()) return wrong;
  return WhatIsWrongWithTotal(of, "test_total", epoch.test_total(), job.test_targets,
                              job.every_target_scored, "the job's test examples");
}

std::string WhatIsWrong(const v1::HeadAblation& ablation, const JobFacts& job) {
  if (ablation.layers() != job.layers || ablation.heads() != job.heads) {
    return absl::StrCat("head ablation: it has ", ablation.layers(), " layers of ",
                        ablation.heads(), " heads; allowed: ", job.layers, " layers of ", job.heads,
                        " heads, as the job's model");
  }
  const Asked asked = TargetsOf(ablation, job);
  return WhatIsWrongWithTotal("head ablation", "total", ablation.total(), asked.targets,
                              asked.exactly && job.every_target_scored,
                              "the examples that were asked for");
}

std::string WhatIsWrong(const v1::Event& event, const JobFacts& job) {
  if (event.has_epoch()) return WhatIsWrong(event.epoch(), job);
  if (event.has_head_ablation()) return WhatIsWrong(event.head_ablation(), job);
  return "";
}

}  // namespace pelab::event
