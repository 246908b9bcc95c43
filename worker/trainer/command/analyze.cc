// A job's analyses on weights that were kept, without training.
#include <ATen/ATen.h>

#include <nlohmann/json.hpp>

#include "worker/trainer/command/command.h"
#include "worker/trainer/command/weights.h"
#include "worker/trainer/command/workbench.h"
#include "worker/trainer/protocol/error.h"

namespace pelab::trainer {

void Analyze(const Arguments& arguments, int events_fd, std::string* job_id) {
  const auto began = std::chrono::steady_clock::now();
  const spec::JobDocument document = ReadJobDocument(arguments.spec);
  *job_id = document.job_id;
  if (document.analyses.empty()) {
    throw TrainerError(ErrorKind::kBadSpec, arguments.spec +
                                                ": \"analyses\" is missing or empty; allowed: "
                                                "at least one analysis to run");
  }
  CheckAnalyses(document);
  EventStream events(events_fd, document.job_id);
  PrepareProcess(arguments);
  Workbench bench(document.job, at::Device(arguments.device));
  ReadWeights(arguments.weights, spec::ToCanonicalJson(document.job), &bench.parameters);
  EmitHello(arguments, bench, document.job.Int("train.epochs"), &events);
  RunAnalyses(document.analyses, arguments, bench, &events);
  events.Emit("done", {{"wall_seconds", SecondsSince(began)}});
}

}  // namespace pelab::trainer
