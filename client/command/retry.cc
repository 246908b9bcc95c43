#include <CLI/CLI.hpp>

#include "client/command/commands.h"
#include "client/embedded/call_session.h"
#include "client/options/repeat_command.h"
#include "client/terminal/put.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/render/text.h"

namespace pelab::client {
namespace {

struct RetryOptions {
  std::string sweep;
  std::string job;
  bool failed = false;
};

absl::StatusOr<int> Run(const Context& context, const RetryOptions& options) {
  if (options.sweep.empty() == options.job.empty()) {
    return absl::InvalidArgumentError("name what to retry: either SWEEP or --job JOB");
  }
  v1::RetryRequest request;
  request.set_failed_only(options.failed);
  if (options.job.empty()) {
    request.mutable_sweep()->set_sweep(options.sweep);
  } else {
    request.set_job(options.job);
  }
  v1::RetryResponse response;
  v1::Sweep sweep;
  PELAB_ASSIGN_OR_RETURN(const Asked asked,
                         CallOnce(context, [&](Coordinator& coordinator) -> absl::Status {
                           PELAB_ASSIGN_OR_RETURN(response, coordinator.Retry(request));
                           if (options.sweep.empty()) return absl::OkStatus();
                           PELAB_ASSIGN_OR_RETURN(sweep, coordinator.Sweep(options.sweep));
                           return absl::OkStatus();
                         }));
  const bool waiting = asked == Asked::kOwnCoordinator && response.queued() > 0;
  return PutRow(
      context, {{"queued", response.queued()}, {"need_nothing", response.nothing()}},
      Concat(response.queued(), response.queued() == 1 ? " job" : " jobs", " queued again, ",
             response.nothing(), response.nothing() == 1 ? " needs no retry\n" : " need no retry\n",
             waiting ? TrainText(context, sweep) : ""));
}

}  // namespace

void AddRetry(Commands& commands) {
  auto options = std::make_shared<RetryOptions>();
  CLI::App* app = AddCommand(
      commands, "retry",
      "queue failed jobs again, counting failures and losses from 0; nothing is deleted",
      "  pelab retry table1\n"
      "  pelab retry --job 12\n"
      "  pelab retry --job 12 --failed --server gpu01:7470\n"
      "A finished sweep is active again until its jobs have ended. --job also retries a cancelled "
      "job, if a sweep that is not cancelled has it. A job continues from its last checkpoint, if "
      "there is one. If no coordinator serves --db, the next pelab run trains the jobs.");
  app->add_option("SWEEP", options->sweep, "number or name of a sweep: its failed jobs");
  app->add_option("--job", options->job, "one job instead, by number or key prefix");
  app->add_flag("--failed", options->failed,
                "only failed jobs, not cancelled ones [of a sweep: always]");
  app->callback([&commands, options] {
    commands.chosen = [&commands, options] { return Run(*commands.context, *options); };
  });
}

}  // namespace pelab::client
