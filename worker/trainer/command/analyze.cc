// The analyze command: runs a job's analyses on kept weights, without training.
#include <ATen/ATen.h>

#include <nlohmann/json.hpp>

#include "worker/trainer/command/command.h"
#include "worker/trainer/command/hello.h"
#include "worker/trainer/command/job_run.h"
#include "worker/trainer/command/packing.h"
#include "worker/trainer/command/weights.h"
#include "worker/trainer/command/workbench.h"
#include "worker/trainer/protocol/error.h"

namespace pelab::trainer {

void Analyze(const Arguments& arguments, JobLedger* jobs) {
  const auto began = std::chrono::steady_clock::now();
  JobRun job(arguments.jobs.front(), jobs);
  if (job.document().analyses.empty()) {
    throw TrainerError(ErrorKind::kBadSpec, job.files().spec +
                                                ": \"analyses\" is missing or empty; allowed: "
                                                "at least one analysis to run");
  }
  PrepareProcess(arguments);
  Workbench bench = PackedBench({&job}, 1, at::Device(arguments.device));
  ReadWeights(arguments.weights, job.spec_json(), &bench.parameters);
  EmitHello(arguments, {}, bench, job.job().Int("train.epochs"), &job);
  RunAnalyses(job.document().analyses, job.files().workdir, bench, &job.events());
  job.Done({{"wall_seconds", SecondsSince(began)}});
}

}  // namespace pelab::trainer
