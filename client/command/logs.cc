#include <CLI/CLI.hpp>
#include <cstdint>

#include "client/command/commands.h"
#include "client/limits.h"
#include "client/source/connect.h"
#include "client/terminal/put.h"
#include "client/terminal/show.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/render/text.h"
#include "core/results/varying.h"

namespace pelab::client {
namespace {

struct LogsOptions {
  std::string job;
  int attempt = 0;
  bool follow = false;
};

render::Json PartJson(const v1::LogPart& part) {
  return {{"attempt", part.attempt()}, {"offset", part.offset()}, {"text", part.data()}};
}

// Prints parts as text and marks gaps between them. A character may span two parts, so only whole
// lines are printed before the end.
class LogPrinter {
 public:
  explicit LogPrinter(const Context& context) : context_(context) {}
  void Add(const v1::LogPart& part) {
    if (part.offset() > next_) {
      Flush();
      context_.out(Concat("[", part.offset() - next_, " bytes are not kept]\n"));
    }
    next_ = part.offset() + part.data().size();
    pending_ += part.data();
    const std::size_t end = pending_.rfind('\n');
    if (end == std::string::npos) return;
    context_.out(
        render::Escape(std::string_view(pending_).substr(0, end + 1), /*keep_lines=*/true));
    pending_.erase(0, end + 1);
  }
  void Flush() {
    if (!pending_.empty()) context_.out(render::Escape(pending_, /*keep_lines=*/true) + "\n");
    pending_.clear();
  }

 private:
  const Context& context_;
  std::uint64_t next_ = 0;
  std::string pending_;
};

// All jobs of the newest sweep that contains this job. Considers the 20 newest sweeps, and none
// with more than 10,000 jobs; if no such sweep contains the job, returns the job alone.
absl::StatusOr<results::JobList> JobsBeside(DataSource& source, const std::string& job) {
  v1::JobFilter filter;
  filter.add_jobs(job);
  PELAB_ASSIGN_OR_RETURN(const results::JobList alone, source.Jobs(filter));
  PELAB_ASSIGN_OR_RETURN(const auto sweeps, source.Sweeps());
  int asked = 0;
  for (const v1::Sweep& sweep : sweeps) {
    if (asked++ == limits::kNeighborSweeps) break;
    filter.set_sweep(Concat(sweep.sweep_id()));
    PELAB_ASSIGN_OR_RETURN(const results::JobList here, source.Jobs(filter));
    if (here.empty() || TotalOf(sweep.jobs()) > limits::kNeighborJobs) continue;
    filter.clear_jobs();
    return source.Jobs(filter);
  }
  return alone;
}

// Prints "job 12: rope distance seed 0 train.lr=0.0003, running" to standard error, above the log.
absl::Status PutTitle(const Context& context, DataSource& source, const std::string& name) {
  if (context.output() != Output::kTable) return absl::OkStatus();
  PELAB_ASSIGN_OR_RETURN(const v1::JobRow job, FindJob(source, name));
  PELAB_ASSIGN_OR_RETURN(const results::JobList jobs, JobsBeside(source, Concat(job.job_id())));
  const results::Varying varying(jobs);
  std::string label;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (jobs.rows()[i].job_id() == job.job_id()) label = varying.LabelOf(i);
  }
  context.err(render::Escape(
                  Concat("job ", job.job_id(), ": ", JobLabel(job, label), ", ", StateText(job))) +
              "\n");
  return absl::OkStatus();
}

absl::StatusOr<int> Follow(const Context& context, const LogsOptions& options) {
  PELAB_ASSIGN_OR_RETURN(auto coordinator, FindCoordinator(context.options));
  PELAB_RETURN_IF_ERROR(PutTitle(context, *coordinator, options.job));
  LogPrinter printer(context);
  const absl::Status status = coordinator->FollowLog(
      options.job, options.attempt,
      [&](const v1::LogPart& part) {
        if (context.output() == Output::kJson) {
          context.out(render::ToJson(PartJson(part), /*one_line=*/true));
        } else {
          printer.Add(part);
        }
      },
      nullptr);
  printer.Flush();
  if (!status.ok()) return status;
  return kExitOk;
}

absl::StatusOr<int> Run(const Context& context, const LogsOptions& options) {
  if (options.follow) return Follow(context, options);
  PELAB_ASSIGN_OR_RETURN(auto source, FindSource(context.options));
  PELAB_ASSIGN_OR_RETURN(const auto parts, source->Log(options.job, options.attempt));
  if (context.output() != Output::kTable) {
    const auto json = [&] {
      render::Json rows = render::Json::array();
      for (const v1::LogPart& part : parts) rows.push_back(PartJson(part));
      return render::Json{{"job", options.job}, {"parts", rows}};
    };
    return Put(context, {.json = json, .rows = "parts", .columns = {"attempt", "offset", "text"}});
  }
  PELAB_RETURN_IF_ERROR(PutTitle(context, *source, options.job));
  LogPrinter printer(context);
  for (const v1::LogPart& part : parts) printer.Add(part);
  printer.Flush();
  if (parts.empty()) context.err("nothing was logged in this attempt\n");
  return kExitOk;
}

}  // namespace

void AddLogs(Commands& commands) {
  auto options = std::make_shared<LogsOptions>();
  CLI::App* app =
      AddCommand(commands, "logs", "what a job's trainer wrote (the last 256 KiB of an attempt)",
                 "  pelab logs 12\n"
                 "  pelab logs 12 -f\n"
                 "  pelab logs 12 --attempt 1");
  app->add_option("JOB", options->job, "a job's number or key prefix")->required();
  app->add_option("--attempt", options->attempt,
                  "number of the attempt, from 1 [default: the latest]")
      ->check(CLI::Range(1, 1000000));
  app->add_flag("-f,--follow", options->follow,
                "go on until the attempt ends; needs a coordinator");
  app->callback([&commands, options] {
    commands.chosen = [&commands, options] { return Run(*commands.context, *options); };
  });
}

}  // namespace pelab::client
