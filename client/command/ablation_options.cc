#include "client/command/ablation_options.h"

#include <CLI/CLI.hpp>

namespace pelab::client {

void AddTarget(CLI::App* app, std::string& target, std::string& sweep) {
  app->add_option("JOB|SWEEP", target, "a job's number or key prefix, or a sweep's name");
  app->add_option("--sweep", sweep, "a sweep by its number or name, in place of JOB|SWEEP");
}

void AddChoice(CLI::App* app, results::AblationChoice& choice) {
  app->add_option("--method", choice.method,
                  "only ablations by zero, mean or resample [default: all]");
  app->add_option("--hygiene", choice.hygiene,
                  "only this restore policy: clean or authors [default: all]");
  app->add_option("--data", choice.split, "only this data: test or all [default: all]");
  app->add_option("--target", choice.target, "only this target: head or authors [default: all]");
}

}  // namespace pelab::client
