#include "client/command/ablation_options.h"

#include <CLI/CLI.hpp>
#include <string_view>

#include "core/catalog/catalog.h"

namespace pelab::client {
namespace {

// Adds a flag that takes the values of a parameter of head ablations.
void AddParameter(CLI::App* app, const std::string& flag, std::string_view field,
                  std::string& value, const std::string& help) {
  const std::vector<std::string_view>& allowed =
      catalog::FindField(field, "head_ablation")->choices;
  app->add_option(flag, value, help)
      ->check(CLI::IsMember(std::vector<std::string>(allowed.begin(), allowed.end())));
}

}  // namespace

void AddTarget(CLI::App* app, std::string& target, std::string& sweep) {
  app->add_option("JOB|SWEEP", target, "a job's number or key prefix, or a sweep's name");
  app->add_option("--sweep", sweep, "a sweep by its number or name, in place of JOB|SWEEP");
}

void AddChoice(CLI::App* app, results::AblationChoice& choice) {
  AddParameter(app, "--method", "head_ablation.method", choice.method,
               "only ablations by zero, mean or resample [default: all]");
  AddParameter(app, "--hygiene", "head_ablation.hygiene", choice.hygiene,
               "only this restore policy: clean or authors [default: all]");
  AddParameter(app, "--data", "head_ablation.data", choice.split,
               "only this data: test or all [default: all]");
  AddParameter(app, "--target", "head_ablation.target", choice.target,
               "only this target: head or authors [default: all]");
}

}  // namespace pelab::client
