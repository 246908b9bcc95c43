#include <CLI/CLI.hpp>

#include "client/command/commands.h"
#include "client/embedded/call_session.h"
#include "client/terminal/put.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/render/text.h"

namespace pelab::client {
namespace {

struct CancelOptions {
  std::string sweep;
  std::string job;
};

// Jobs that have ended, and those that other sweeps want too, are not cancelled.
std::string OthersText(const v1::CancelResponse& response) {
  if (response.claims_withdrawn() <= response.jobs_cancelled()) return "";
  return Concat("; ", response.claims_withdrawn() - response.jobs_cancelled(),
                " had ended already, or other sweeps want them too");
}

absl::StatusOr<int> Run(const Context& context, const CancelOptions& options) {
  if (options.sweep.empty() == options.job.empty()) {
    return absl::InvalidArgumentError("name what to cancel: either SWEEP or --job JOB");
  }
  v1::CancelRequest request;
  if (options.job.empty()) {
    request.mutable_sweep()->set_sweep(options.sweep);
  } else {
    request.set_job(options.job);
  }
  absl::StatusOr<v1::CancelResponse> response;
  PELAB_RETURN_IF_ERROR(CallOnce(context, [&](Coordinator& coordinator) {
                          response = coordinator.Cancel(request);
                          return response.status();
                        }).status());
  return PutRow(
      context,
      {{"claims_withdrawn", response->claims_withdrawn()},
       {"jobs_cancelled", response->jobs_cancelled()},
       {"more", response->more()}},
      Concat("cancelled ",
             render::Counted(static_cast<std::int64_t>(response->jobs_cancelled()), "job"),
             OthersText(*response), "; results that are stored stay\n",
             response->more() ? "the sweep is large: no job of it starts any more, and "
                                "the coordinator goes on cancelling them\n"
                              : ""));
}

}  // namespace

void AddCancel(Commands& commands) {
  auto options = std::make_shared<CancelOptions>();
  CLI::App* app = AddCommand(
      commands, "cancel", "cancel a sweep or a job; nothing that is stored is deleted",
      "  pelab cancel quick\n"
      "  pelab cancel --job 12 --server gpu01:7470\n"
      "Running jobs stop within two seconds, and what they have trained since their last "
      "checkpoint is lost. pelab pause lets them end.");
  app->add_option("SWEEP", options->sweep,
                  "number or name of a sweep; a job stops when no other live sweep wants it");
  app->add_option("--job", options->job, "one job instead, by number or key prefix");
  app->callback([&commands, options] {
    commands.chosen = [&commands, options] { return Run(*commands.context, *options); };
  });
}

}  // namespace pelab::client
