#include <CLI/CLI.hpp>

#include "client/command/commands.h"
#include "client/source/connect.h"
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
  PELAB_ASSIGN_OR_RETURN(auto coordinator, FindCoordinator(context.options));
  v1::RetryRequest request;
  request.set_failed_only(options.failed);
  if (options.job.empty()) {
    request.mutable_sweep()->set_sweep(options.sweep);
  } else {
    request.set_job(options.job);
  }
  PELAB_ASSIGN_OR_RETURN(const auto response, coordinator->Retry(std::move(request)));
  return PutRow(context, {{"queued", response.queued()}, {"need_nothing", response.nothing()}},
                Concat(response.queued(), response.queued() == 1 ? " job" : " jobs",
                       " queued again, ", response.nothing(),
                       response.nothing() == 1 ? " needs no retry\n" : " need no retry\n"));
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
      "there is one.");
  app->add_option("SWEEP", options->sweep, "number or name of a sweep: its failed jobs");
  app->add_option("--job", options->job, "one job instead, by number or key prefix");
  app->add_flag("--failed", options->failed,
                "only failed jobs, not cancelled ones [of a sweep: always]");
  app->callback([&commands, options] {
    commands.chosen = [&commands, options] { return Run(*commands.context, *options); };
  });
}

}  // namespace pelab::client
