// diff: the differences between two jobs.
#include <CLI/CLI.hpp>
#include <utility>

#include "client/command/commands.h"
#include "client/source/connect.h"
#include "client/terminal/job_difference.h"
#include "client/terminal/put.h"
#include "core/base/status.h"
#include "core/base/strings.h"

namespace pelab::client {
namespace {

struct DiffOptions {
  std::string a;
  std::string b;
};

absl::StatusOr<DiffSide> Read(DataSource& source, const std::string& job) {
  v1::JobFilter filter;
  filter.add_jobs(job);
  PELAB_ASSIGN_OR_RETURN(const auto jobs, source.Jobs(filter));
  if (jobs.empty()) return absl::NotFoundError(Concat("no job ", job));
  DiffSide side{.job = jobs.rows().front(), .spec_json = jobs.SpecOf(jobs.rows().front())};
  PELAB_ASSIGN_OR_RETURN(const auto attempts, source.Attempts(filter));
  for (const v1::AttemptRow& attempt : attempts) {
    const bool trained = side.attempt && side.attempt->outcome() == v1::ATTEMPT_OUTCOME_SUCCEEDED;
    if (!trained) side.attempt = attempt;
  }
  PELAB_RETURN_IF_ERROR(source.ReadCurves(filter, [&](const auto& page) {
    side.curve.insert(side.curve.end(), page.begin(), page.end());
    return absl::OkStatus();
  }));
  return side;
}

absl::StatusOr<int> Run(const Context& context, const DiffOptions& options) {
  PELAB_ASSIGN_OR_RETURN(const auto source, FindSource(context.options));
  PELAB_ASSIGN_OR_RETURN(const DiffSide a, Read(*source, options.a));
  PELAB_ASSIGN_OR_RETURN(const DiffSide b, Read(*source, options.b));
  render::Json difference = DifferenceOf(a, b);
  const auto csv = [&] {
    render::Json rows = render::Json::array();
    for (const char* section : {"spec", "environment", "result"}) {
      for (render::Json row : difference.at(section)) {
        row["section"] = section;
        rows.push_back(std::move(row));
      }
    }
    return rows;
  };
  return Put(context, {.json = [&] { return difference; },
                       .text = [&] { return DifferenceText(difference, context.style); },
                       .columns = {"section", "field", "a", "b"},
                       .csv = csv});
}

}  // namespace

void AddDiff(Commands& commands) {
  auto options = std::make_shared<DiffOptions>();
  CLI::App* app = AddCommand(commands, "diff",
                             "what differs between two jobs: spec, environment, result, curves",
                             "  pelab diff 12 13\n"
                             "  pelab diff 3f9a01 12 --output json");
  app->add_option("JOB", options->a, "a job's number or key prefix")->required();
  app->add_option("OTHER", options->b, "the job to compare it with")->required();
  app->callback([&commands, options] {
    commands.chosen = [&commands, options] { return Run(*commands.context, *options); };
  });
}

}  // namespace pelab::client
