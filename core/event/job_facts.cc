#include "core/event/job_facts.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "core/base/json_text.h"
#include "core/experiment/canonical_json.h"

namespace pelab::event {
namespace {

// Empty, or why `total` is not the number of scored examples among `examples`.
std::string WhatIsWrongWithTotal(absl::string_view of, absl::string_view name, std::int64_t total,
                                 std::int64_t examples, bool exactly, absl::string_view what) {
  if (exactly ? total == examples : total <= examples) return "";
  return absl::StrCat(of, ": \"", name, "\" is ", total, "; allowed: ", exactly ? "" : "at most ",
                      examples, ", as ", what);
}

// The examples of which an ablation was asked for.
struct Asked {
  std::int64_t examples = 0;
  bool exactly = false;  // the parameters say all that is needed
};
Asked ExamplesOf(const v1::HeadAblation& ablation, const JobFacts& job) {
  const auto parameters = ParseJson(ablation.parameters_json());
  if (!parameters.is_object()) return {std::numeric_limits<std::int64_t>::max(), false};
  const auto data = parameters.find("data");
  const auto most = parameters.find("max_examples");
  const std::optional<std::int64_t> limit =
      most == parameters.end() ? std::nullopt : IntegerOf<std::int64_t>(*most);
  Asked asked{job.train_examples + job.test_examples,
              data != parameters.end() && limit.has_value()};
  if (data != parameters.end() && *data == "test") asked.examples = job.test_examples;
  if (limit.value_or(0) > 0) asked.examples = std::min(asked.examples, *limit);
  return asked;
}

}  // namespace

std::optional<JobFacts> FactsOf(std::string_view spec_json) {
  const experiment::CanonicalResult result = experiment::FromCanonicalJson(spec_json);
  if (!result.job) return std::nullopt;
  const experiment::Job& job = *result.job;
  return JobFacts{.layers = job.Int("model.layers"),
                  .heads = job.Int("model.heads"),
                  .train_examples = job.Int("task.train_examples"),
                  .test_examples = job.Int("task.test_examples"),
                  .every_example_scored = job.Choice("task.scored_classes") == "all"};
}

std::string WhatIsWrong(const v1::Epoch& epoch, const JobFacts& job) {
  const std::string of = absl::StrCat("epoch ", epoch.epoch());
  std::string wrong =
      WhatIsWrongWithTotal(of, "train_total", epoch.train_total(), job.train_examples,
                           job.every_example_scored, "the job's training examples");
  if (!wrong.empty()) return wrong;
  wrong = WhatIsWrongWithTotal(of, "train_eval_total", epoch.train_eval_total(), job.train_examples,
                               false, "the job's training examples");
  if (!wrong.empty()) return wrong;
  return WhatIsWrongWithTotal(of, "test_total", epoch.test_total(), job.test_examples,
                              job.every_example_scored, "the job's test examples");
}

std::string WhatIsWrong(const v1::HeadAblation& ablation, const JobFacts& job) {
  if (ablation.layers() != job.layers || ablation.heads() != job.heads) {
    return absl::StrCat("head ablation: it has ", ablation.layers(), " layers of ",
                        ablation.heads(), " heads; allowed: ", job.layers, " layers of ", job.heads,
                        " heads, as the job's model");
  }
  const Asked asked = ExamplesOf(ablation, job);
  return WhatIsWrongWithTotal("head ablation", "total", ablation.total(), asked.examples,
                              asked.exactly && job.every_example_scored,
                              "the examples that were asked for");
}

std::string WhatIsWrong(const v1::Event& event, const JobFacts& job) {
  if (event.has_epoch()) return WhatIsWrong(event.epoch(), job);
  if (event.has_head_ablation()) return WhatIsWrong(event.head_ablation(), job);
  return "";
}

}  // namespace pelab::event
