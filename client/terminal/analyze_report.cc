#include "client/terminal/analyze_report.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "client/limits.h"
#include "client/terminal/progress.h"
#include "client/terminal/put.h"
#include "client/terminal/show.h"
#include "core/base/json_text.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/render/text.h"
#include "core/results/variants.h"

namespace pelab::client {
namespace {

using render::Json;

const std::vector<std::string> kColumns = {"queued",         "stored",      "not_possible",
                                           "after_training", "not_trained", "lacking"};

Json AnswerJson(const AnalysisPlan& plan, const v1::AnalyzeResponse& answer) {
  Json analyses = Json::array();
  for (const auto& [protocol, of_protocol] : plan.by_protocol) {
    for (const v1::Analysis& analysis : of_protocol) {
      analyses.push_back({{"protocol", protocol},
                          {"name", analysis.name()},
                          {"version", analysis.version()},
                          {"parameters", ParseJsonOrNull<Json>(analysis.parameters_json())}});
    }
  }
  return {{"analyses", analyses},
          {"queued", answer.queued()},
          {"stored", answer.stored()},
          {"not_possible", answer.not_possible()},
          {"after_training", answer.after_training()},
          {"not_trained", answer.not_trained()},
          {"reasons", std::vector<std::string>(answer.reasons().begin(), answer.reasons().end())}};
}

std::string AnswerText(const AnalysisPlan& plan, const v1::AnalyzeResponse& answer) {
  std::string text;
  std::vector<std::string> shown;
  for (const auto& [protocol, analyses] : plan.by_protocol) {
    for (const v1::Analysis& analysis : analyses) {
      const std::string line = Concat(
          analysis.name(), ": ",
          results::Describe({analysis.name(), analysis.version(), analysis.parameters_json()}));
      if (std::find(shown.begin(), shown.end(), line) == shown.end()) shown.push_back(line);
    }
  }
  for (const std::string& line : shown) text += line + "\n";
  text +=
      Concat(plan.title, ": ", answer.queued(), " queued, ", answer.stored(), " already stored");
  if (answer.after_training() > 0)
    text += Concat(", ", answer.after_training(), " after their training");
  if (answer.not_possible() > 0)
    text += Concat(", ", answer.not_possible(), " not possible (no kept weights)");
  if (answer.not_trained() > 0)
    text += Concat(", ", answer.not_trained(), " not trained (failed or cancelled)");
  return text + "\n";
}

// Writes the answer. If `lacking` (the jobs that lack analyses) is not null, adds it; in CSV, its
// size.
void PutJsonOrCsv(const Context& context, Json answer, const Json& lacking) {
  const auto with = [&](const Json& lacks) {
    if (!lacking.is_null()) answer["lacking"] = lacks;
    return answer;
  };
  Put(context, {.json = [&] { return with(lacking); },
                .text = [] { return ""; },
                .columns = kColumns,
                .csv = [&] { return Json::array({with(lacking.size())}); }});
}

// One line of progress: redrawn on a terminal, printed again after each change elsewhere.
class ProgressLine {
 public:
  explicit ProgressLine(const Context& context)
      : context_(context), redraw_(isatty(STDERR_FILENO) != 0 && context.style.color) {}
  ~ProgressLine() {
    if (redraw_ && !last_.empty()) context_.err("\r\x1b[K");
  }
  void Update(std::uint64_t done, std::uint64_t total, std::uint64_t running,
              const std::string& waiting) {
    std::string line = Concat("analyzing: ", done, "/", total, " jobs");
    if (running > 0) line += Concat(", ", running, " running");
    if (running == 0 && !waiting.empty()) line += "; waiting: " + render::Escape(waiting);
    if (line == last_) return;
    last_ = line;
    if (!redraw_) return context_.err(line + "\n");
    const double fraction = total == 0 ? 1 : static_cast<double>(done) / static_cast<double>(total);
    context_.err("\r\x1b[K" + render::Bar(fraction, 20, context_.style) + "  " +
                 render::Truncate(line, std::max(20, context_.style.width - 23)));
  }

 private:
  const Context& context_;
  bool redraw_;
  std::string last_;
};

}  // namespace

void PutAnswer(const Context& context, const AnalysisPlan& plan,
               const v1::AnalyzeResponse& answer) {
  if (context.output() != Output::kTable) return;
  context.out(render::Escape(AnswerText(plan, answer), /*keep_lines=*/true));
  for (const std::string& reason : answer.reasons()) {
    context.err(Concat("pelab: ", render::Escape(reason), "\n"));
  }
}

absl::Status AwaitAnalyses(const Context& context, DataSource& source, const AnalysisPlan& plan,
                           bool trained_only, Canceller* canceller) {
  v1::JobFilter open = plan.filter;
  for (const auto state : {v1::JOB_STATE_QUEUED, v1::JOB_STATE_ASSIGNED, v1::JOB_STATE_RUNNING})
    open.add_states(state);
  ProgressLine progress(context);
  std::uint64_t total = 0;
  for (;;) {
    if (canceller != nullptr && canceller->cancelled()) return absl::CancelledError("stopped");
    PELAB_ASSIGN_OR_RETURN(const results::JobList jobs, source.Jobs(open));
    std::uint64_t left = 0;
    std::uint64_t running = 0;
    for (const v1::JobRow& job : jobs) {
      if (trained_only && !job.trained()) continue;
      ++left;
      if (job.state() != v1::JOB_STATE_QUEUED) ++running;
    }
    total = std::max(total, left);
    std::string waiting;
    if (running == 0 && left > 0 && !plan.filter.sweep().empty()) {
      PELAB_ASSIGN_OR_RETURN(const v1::Sweep sweep, source.Sweep(plan.filter.sweep()));
      waiting = sweep.waiting_reason();
    }
    progress.Update(total - left, total, running, waiting);
    if (left == 0) return absl::OkStatus();
    absl::SleepFor(limits::kAnalysisPoll);
  }
}

absl::StatusOr<int> ReportAnalyses(const Context& context, DataSource& source,
                                   const AnalysisPlan& plan, const v1::AnalyzeResponse& answer) {
  PELAB_ASSIGN_OR_RETURN(const std::vector<LackingJob> lacking, FindLacking(source, plan));
  const int code = lacking.empty() ? kExitOk : kExitIncomplete;
  if (context.output() == Output::kTable) {
    context.out(Concat(plan.title, ": ", plan.jobs.size() - lacking.size(), " of ",
                       plan.jobs.size(), plan.jobs.size() == 1 ? " job has" : " jobs have",
                       " what was asked for\n"));
    for (std::size_t i = 0; i < std::min(lacking.size(), limits::kErrorsShown); ++i) {
      const LackingJob& one = lacking[i];
      context.err(Concat("pelab: job ", one.job.job_id(), " (", render::Escape(JobLabel(one.job)),
                         ") lacks it", one.error.empty() ? "" : ": ", render::Escape(one.error),
                         "\n"));
    }
    if (lacking.size() > limits::kErrorsShown) {
      context.err(Concat("pelab: and ", lacking.size() - limits::kErrorsShown, " more jobs\n"));
    }
    return code;
  }
  Json rows = Json::array();
  for (const LackingJob& one : lacking) {
    rows.push_back({{"job_id", one.job.job_id()},
                    {"error", one.error.empty() ? Json(nullptr) : Json(one.error)}});
  }
  PutJsonOrCsv(context, AnswerJson(plan, answer), rows);
  return code;
}

int PutAnswerOnly(const Context& context, const AnalysisPlan& plan,
                  const v1::AnalyzeResponse& answer) {
  PutJsonOrCsv(context, AnswerJson(plan, answer), nullptr);
  return answer.not_possible() + answer.not_trained() > 0 ? kExitIncomplete : kExitOk;
}

}  // namespace pelab::client
