#include "core/event/check.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/json_text.h"
#include "core/base/sha256.h"
#include "core/base/utf8.h"

namespace pelab::event {
namespace {

// Collects the first broken rule of one event.
class Rules {
 public:
  explicit Rules(std::string of) : of_(std::move(of)) {}

  void Integer(absl::string_view name, std::int64_t value, std::int64_t least,
               std::int64_t most = std::numeric_limits<std::int64_t>::max()) {
    if (value >= least && value <= most) return;
    Break(name, value, absl::StrCat("an integer from ", least, " to ", most));
  }
  // `correct` examples of `total`.
  void Score(absl::string_view name, std::int64_t correct, absl::string_view total_name,
             std::int64_t total) {
    Integer(total_name, total, 1, kMostExamples);
    Integer(name, correct, 0, total);
  }
  // The size of a file. Databases have no larger integers.
  void Bytes(std::uint64_t bytes) {
    if (std::in_range<std::int64_t>(bytes)) return;
    Break("bytes", bytes, "an integer from 0 to 9223372036854775807");
  }
  // A loss (a cross-entropy is never negative), its standard error, or a learning rate.
  void FromZero(absl::string_view name, double value) {
    if (!std::isfinite(value) || value < 0) Break(name, value, "a number from 0 on");
  }
  void Seconds(absl::string_view name, double value) { FromZeroTo(kMostSeconds, name, value); }
  void Joules(absl::string_view name, double value) { FromZeroTo(kMostJoules, name, value); }
  void Settings(const v1::Execution& execution) {
    Integer("threads", execution.threads(), 1, kMostThreads);
    Integer("micro_batch", execution.micro_batch(), 0, kMostMicroBatch);
    Integer("packing", execution.packing(), 1, kMostPacking);
  }
  void That(bool holds, absl::string_view otherwise) {
    if (!holds && wrong_.empty()) wrong_ = absl::StrCat(of_, ": ", otherwise);
  }
  void Break(absl::string_view name, const absl::AlphaNum& value, absl::string_view allowed) {
    That(false, absl::StrCat("\"", name, "\" is ", value, "; allowed: ", allowed));
  }
  bool hold() const { return wrong_.empty(); }
  std::string What() && { return std::move(wrong_); }

 private:
  void FromZeroTo(double most, absl::string_view name, double value) {
    if (value >= 0 && value <= most) return;  // false for NaN
    Break(name, value, absl::StrCat("a number from 0 to ", most));
  }

  const std::string of_;
  std::string wrong_;
};

std::string WhatIsWrongIn(const v1::Started& started) {
  Rules rules("hello");
  rules.Integer("start_epoch", started.start_epoch(), 0);
  rules.Integer("epochs", started.epochs(), 1);
  if (started.has_execution()) rules.Settings(started.execution());
  return std::move(rules).What();
}

// An example is right or wrong in the intact model, and right or wrong without the head. So the
// number of correct examples must fall by `lost` minus `gained`.
std::string WhatIsWrongWithEntry(const v1::HeadAblation& ablation, int i) {
  Rules rules(
      absl::StrCat("head ablation: layer ", i / ablation.heads(), " head ", i % ablation.heads()));
  const std::int64_t intact = ablation.intact_correct();
  rules.Integer("correct", ablation.correct(i), 0, ablation.total());
  rules.Integer("lost", ablation.lost(i), 0, intact);
  rules.Integer("gained", ablation.gained(i), 0, ablation.total() - intact);
  rules.FromZero("nll", ablation.nll(i));
  rules.FromZero("nll_standard_error", ablation.nll_standard_error(i));
  if (!rules.hold()) return std::move(rules).What();
  rules.That(intact - ablation.correct(i) == ablation.lost(i) - ablation.gained(i),
             absl::StrCat("it has ", ablation.correct(i), " correct of ", intact, " intact, but ",
                          ablation.lost(i), " lost and ", ablation.gained(i), " gained"));
  return std::move(rules).What();
}

// Each array has an entry for every head of every layer.
void CheckShape(const v1::HeadAblation& ablation, Rules& rules) {
  const std::int64_t entries = std::int64_t{ablation.layers()} * ablation.heads();
  const auto check = [&](absl::string_view name, int size) {
    if (size == entries) return;
    rules.That(false,
               absl::StrCat("\"", name, "\" has ", size, " entries; allowed: ", entries, ", for ",
                            ablation.layers(), " layers of ", ablation.heads(), " heads"));
  };
  check("correct", ablation.correct_size());
  check("lost", ablation.lost_size());
  check("gained", ablation.gained_size());
  check("nll", ablation.nll_size());
  check("nll_standard_error", ablation.nll_standard_error_size());
  if (ablation.missing_size() > 0) check("missing", ablation.missing_size());
}

// A whole text or its length: a text that is cut may end within a character.
std::string WholeOrLength(const std::string& text) {
  constexpr std::size_t kMost = 200;
  return text.size() <= kMost ? text : absl::StrCat("of ", text.size(), " bytes");
}

// A file's name on one line, quoted.
std::string ShownName(const std::string& name) {
  return absl::StrCat("\"", absl::CHexEscape(name.substr(0, 80)), name.size() > 80 ? "…" : "",
                      "\"");
}

std::string WhatIsWrongIn(const v1::Checkpoint& checkpoint) {
  Rules rules("checkpoint");
  rules.Integer("epoch", checkpoint.epoch(), 0);
  rules.That(IsSha256(checkpoint.sha256()), "its file has no SHA-256");
  rules.Bytes(checkpoint.bytes());
  return std::move(rules).What();
}

std::string WhatIsWrongIn(const v1::Finished& finished) {
  switch (finished.outcome()) {
    case v1::ATTEMPT_OUTCOME_SUCCEEDED:
    case v1::ATTEMPT_OUTCOME_FAILED:
    case v1::ATTEMPT_OUTCOME_PREEMPTED:
    case v1::ATTEMPT_OUTCOME_CANCELLED: {
      Rules rules("end");
      rules.Seconds("wall_seconds", finished.wall_seconds());
      rules.Joules("energy_joules", finished.energy_joules());  // 0 if it is absent
      return std::move(rules).What();
    }
    default:
      return absl::StrCat("end: \"outcome\" is ", static_cast<int>(finished.outcome()),
                          "; allowed: succeeded, failed, preempted or cancelled");
  }
}

}  // namespace

AnalysisId IdOf(const v1::HeadAblation& ablation) {
  return {"head_ablation", ablation.version(), ablation.parameters_json()};
}
AnalysisId IdOf(const v1::AnalysisResult& result) {
  return {result.name(), result.version(), result.parameters_json()};
}
std::string ToText(const AnalysisId& analysis) {
  return absl::StrCat(WholeOrLength(analysis.name), ", version ", analysis.version, ", parameters ",
                      WholeOrLength(analysis.parameters_json));
}

bool HasFiniteLosses(const v1::Epoch& epoch) {
  return std::isfinite(epoch.train_loss()) && std::isfinite(epoch.test_loss());
}

std::string WhatIsWrong(const v1::Epoch& epoch) {
  Rules rules(absl::StrCat("epoch ", epoch.epoch()));
  rules.Integer("epoch", epoch.epoch(), 0);
  rules.FromZero("train_loss", epoch.train_loss());
  rules.FromZero("test_loss", epoch.test_loss());
  rules.Score("train_correct", epoch.train_correct(), "train_total", epoch.train_total());
  rules.Score("test_correct", epoch.test_correct(), "test_total", epoch.test_total());
  if (epoch.has_train_eval_correct() || epoch.has_train_eval_total()) {
    rules.Score("train_eval_correct", epoch.train_eval_correct(), "train_eval_total",
                epoch.train_eval_total());
  }
  rules.FromZero("learning_rate", epoch.learning_rate());
  rules.Seconds("seconds", epoch.seconds());
  return std::move(rules).What();
}

std::string WhatIsWrong(const v1::HeadAblation& ablation) {
  Rules rules("head ablation");
  rules.Integer("version", ablation.version(), 1);
  rules.That(IsJsonObject(ablation.parameters_json()), "its parameters are not a JSON object");
  rules.Integer("layers", ablation.layers(), 1, kMostLayers);
  rules.Integer("heads", ablation.heads(), 1, kMostHeads);
  rules.Score("intact_correct", ablation.intact_correct(), "total", ablation.total());
  rules.FromZero("intact_nll", ablation.intact_nll());
  if (!(ablation.chance() > 0 && ablation.chance() <= 1)) {
    rules.Break("chance", ablation.chance(), "a number above 0 and at most 1");
  }
  rules.Seconds("seconds", ablation.seconds());
  if (!rules.hold()) return std::move(rules).What();
  CheckShape(ablation, rules);
  if (!rules.hold()) return std::move(rules).What();
  for (int i = 0; i < ablation.correct_size(); ++i) {
    if (!HasEntry(ablation, i)) continue;
    if (std::string wrong = WhatIsWrongWithEntry(ablation, i); !wrong.empty()) return wrong;
  }
  return "";
}

std::string WhatIsWrong(const v1::AnalysisResult& result) {
  Rules rules(absl::StrCat("analysis ", Shorten(result.name(), 80)));
  rules.That(!result.name().empty(), "it has no name");
  rules.Integer("version", result.version(), 1);
  rules.That(IsJsonObject(result.parameters_json()), "its parameters are not a JSON object");
  rules.That(IsJson(result.result_json()), "its result is not JSON");
  rules.Seconds("seconds", result.seconds());
  return std::move(rules).What();
}

std::string WhatIsWrong(const v1::Artifact& artifact) {
  Rules rules("file");
  rules.That(!artifact.name().empty(), "it has no name");
  if (!IsPlainFileName(artifact.name())) {
    rules.Break("name", ShownName(artifact.name()), kPlainFileName);
  }
  rules.That(IsSha256(artifact.sha256()), "it has no SHA-256");
  rules.Bytes(artifact.bytes());
  return std::move(rules).What();
}

std::string WhatIsWrong(const v1::Execution& execution) {
  Rules rules("execution");
  rules.Settings(execution);
  return std::move(rules).What();
}

std::string WhatIsWrongWithSeconds(absl::string_view of, absl::string_view name, double seconds) {
  Rules rules{std::string(of)};
  rules.Seconds(name, seconds);
  return std::move(rules).What();
}

std::string WhatIsWrongWithJoules(absl::string_view of, absl::string_view name, double joules) {
  Rules rules{std::string(of)};
  rules.Joules(name, joules);
  return std::move(rules).What();
}

std::optional<v1::Execution> ExecutionFromJson(const std::string& json) {
  const auto object = ParseJson(json);
  if (!object.is_object()) return std::nullopt;
  bool whole = true;
  const auto number = [&](const char* name) -> std::int32_t {
    const auto member = object.find(name);
    const auto value = member == object.end() ? std::nullopt : IntegerOf<std::int32_t>(*member);
    whole = whole && value.has_value();
    return value.value_or(0);
  };
  v1::Execution execution;
  execution.set_threads(number("threads"));
  execution.set_micro_batch(number("micro_batch"));
  execution.set_packing(number("packing"));
  return whole ? std::optional(execution) : std::nullopt;
}

std::string WhatIsWrong(const v1::Event& event) {
  switch (event.body_case()) {
    case v1::Event::kStarted:
      return WhatIsWrongIn(event.started());
    case v1::Event::kEpoch:
      return WhatIsWrong(event.epoch());
    case v1::Event::kHeadAblation:
      return WhatIsWrong(event.head_ablation());
    case v1::Event::kAnalysis:
      return WhatIsWrong(event.analysis());
    case v1::Event::kArtifact:
      return WhatIsWrong(event.artifact());
    case v1::Event::kCheckpoint:
      return WhatIsWrongIn(event.checkpoint());
    case v1::Event::kFinished:
      return WhatIsWrongIn(event.finished());
    case v1::Event::BODY_NOT_SET:
      break;
  }
  return "it has no body";
}

}  // namespace pelab::event
