#include "worker/trainer/command/workbench.h"

#include <ATen/ATen.h>
#include <malloc.h>

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/json_text.h"
#include "core/experiment/analysis.h"
#include "core/experiment/canonical_json.h"
#include "worker/trainer/analysis/registry.h"
#include "worker/trainer/operations/kernel_calls.h"
#include "worker/trainer/parameters/torch_compat.h"
#include "worker/trainer/pe/own_source.h"
#include "worker/trainer/protocol/error.h"

namespace pelab::trainer {
namespace {

// Makes the process keep freed memory. A step needs tensors of the same sizes as the last step.
// Returning their pages to the system and faulting them in again would cost several percent of a
// step.
void KeepFreedMemory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the largest value that glibc accepts
  mallopt(M_TRIM_THRESHOLD, 512 << 20);
  mallopt(M_TOP_PAD, 64 << 20);
#endif
}

// "analysis-2-layer_ablation.json". The number is needed because a job may have the same analysis
// twice, with different parameters.
std::string ResultName(std::size_t place, const experiment::Analysis& analysis) {
  return "analysis-" + std::to_string(place) + "-" + analysis.name + ".json";
}

void RunAnalysis(const experiment::Analysis& analysis, const std::string& result_name,
                 const std::string& workdir, const Workbench& bench, EventStream* events) {
  const auto began = std::chrono::steady_clock::now();
  const AnalysisEntry& entry = FindAnalysis(analysis);
  const nlohmann::ordered_json result = entry.run(analysis, {bench.job, bench.decoder, bench.data});
  nlohmann::ordered_json members;
  if (!entry.own_event) members["name"] = entry.name;
  members["version"] = entry.version;
  members["parameters"] =
      ParseJson<nlohmann::ordered_json>(experiment::CanonicalParameters(analysis));
  if (entry.own_event) {
    members.update(result);
  } else {
    members["file"] = WriteFileAtomically(workdir, result_name, result.dump()).name;
  }
  members["seconds"] = SecondsSince(began);
  events->Emit(entry.own_event ? std::string(entry.name) : "analysis", members);
}

}  // namespace

double SecondsSince(std::chrono::steady_clock::time_point began) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

nlohmann::ordered_json FileJson(const FileInfo& file) {
  return {{"file", file.name}, {"sha256", file.sha256}, {"bytes", file.bytes}};
}

void PrepareProcess(const Arguments& arguments) {
  for (const JobFiles& job : arguments.jobs) {
    std::error_code error;
    std::filesystem::create_directories(job.workdir, error);
    if (!error) continue;
    throw TrainerError(ErrorKind::kIo, "cannot create " + job.workdir + ": " + error.message());
  }
  KeepFreedMemory();
  ConfigureDeterminism(arguments.threads);
  if (arguments.plain) UsePlainOperations();
  UseFilesIn(arguments.files);
  RequireDevice(arguments.device);
  LimitDeviceMemory(arguments.device);
}

Workbench::Workbench(const std::vector<const experiment::Job*>& jobs,
                     const std::vector<const Dataset*>& datasets, at::Device device)
    : job(*jobs.front()),
      labels(LabelSpaceOf(job, *datasets.front())),
      data(datasets, labels, device),
      decoder(job, ModelConfigFrom(job, labels.classes), &parameters) {
  std::vector<std::int64_t> seeds;
  for (const experiment::Job* member : jobs) seeds.push_back(member->seed);
  parameters.Materialize(seeds, device, at::kFloat, job.Choice("train.precision") == "bf16");
}

std::int64_t CountParameters(const experiment::Job& job, const Dataset& data) {
  ParameterSet parameters;
  const Decoder decoder(job, ModelConfigFrom(job, LabelSpaceOf(job, data).classes), &parameters);
  return parameters.count();
}

void CheckAnalyses(const experiment::JobDocument& document) {
  for (const experiment::Analysis& analysis : document.analyses) {
    FindAnalysis(analysis).check(analysis, document.job);
  }
}

void RunAnalyses(const std::vector<experiment::Analysis>& analyses, const std::string& workdir,
                 const Workbench& bench, EventStream* events) {
  for (std::size_t i = 0; i < analyses.size(); ++i) {
    RunAnalysis(analyses[i], ResultName(i, analyses[i]), workdir, bench, events);
  }
}

}  // namespace pelab::trainer
